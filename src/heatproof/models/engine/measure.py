"""How many rows at once? A short measurement: the answer differs widely between networks and machines."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import torch

from heatproof.models.engine.device import out_of_memory, synchronise

Clock: TypeAlias = Callable[[], float]
SIZES = (1, 4, 8, 16, 32, 64)
LARGE_SIZES = (8, 16, 32, 64, 128, 256)  # where there is a GPU to fill
SLACK = 1.04  # of sizes this close the smallest is taken: it wastes least on the last, padded micro-batch
LOST = 1.25  # a size this much slower per row than the best ends the climb
AT_LEAST = 3  # sizes are tried before a slow one may end it: on a busy machine one is often slow by accident
MOMENT = 0.03  # seconds of repeats per size
BUDGET = 0.4  # seconds per climb; a size is tried if its two passes will fit


def sizes(device: torch.device) -> tuple[int, ...]:
    return SIZES if device.type == "cpu" else LARGE_SIZES


def clock_for(device: torch.device) -> Clock:
    """One thread is timed by the work it did, whatever else goes on; several, or a GPU, by the wall."""
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    return time.process_time if alone else time.perf_counter


def climb(
    run: Callable[[int], object],
    candidates: Sequence[int],
    device: torch.device,
    budget: float = BUDGET,
    clock: Clock | None = None,
) -> dict[int, float]:
    """Seconds per row at growing sizes, until they get worse, memory ends or the budget is spent.

    The first size is always measured; it fails as the network fails.
    """
    clock = clock or clock_for(device)
    found: dict[int, float] = {}
    started = clock()
    for size in candidates:
        if found and clock() - started + 2 * size * min(found.values()) > budget:
            break
        try:
            found[size] = _seconds(run, size, device, clock) / size
        except Exception as error:
            if not found or not out_of_memory(error):
                raise
            break
        if len(found) >= AT_LEAST and found[size] > LOST * min(found.values()):
            break
    return found


def _seconds(run: Callable[[int], object], size: int, device: torch.device, clock: Clock) -> float:
    """The least of some repeats after one to warm up: noise only ever adds."""
    run(size)
    synchronise(device)
    best, spent = float("inf"), 0.0
    while spent < MOMENT:
        before = clock()
        run(size)
        synchronise(device)
        elapsed = clock() - before
        best, spent = min(best, elapsed), spent + max(elapsed, MOMENT / 20)
    return best


def best_size(seconds: Mapping[int, float]) -> int:
    """The smallest size that is about as quick per row as the quickest."""
    quickest = min(seconds.values())
    return min(size for size, cost in seconds.items() if cost <= SLACK * quickest)
