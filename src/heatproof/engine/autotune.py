"""Chooses back-end, memory layout and micro-batch size by timing passes of made-up pictures."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor, nn

from heatproof.engine import checks
from heatproof.engine.backends import onnx
from heatproof.engine.backends.eager import Runner, copied, evaluating, in_layout, input_gradient, untouched
from heatproof.engine.backends.folded import folded
from heatproof.engine.choice import Choice, Layout
from heatproof.engine.machine import out_of_memory, synchronise
from heatproof.engine.weight_state import unheard
from heatproof.types import Model

log = logging.getLogger("heatproof")

Kind: TypeAlias = Literal["forward", "gradient"]
Clock: TypeAlias = Callable[[], float]

DEFAULT_SIZE = 8
TINY = 5e6  # parameters × pixels, a bound on products per image: below it measuring costs more than it saves
WORTH_EXPORTING = 0.003  # seconds per image: below it a few seconds of exporting are rarely paid back
GAIN = 0.9  # another back-end must take at most this share of the time to be worth other float errors
SIZES = (1, 4, 8, 16, 32, 64)
SLOW_SIZES = (1, 2, 4, 8, 16)
LARGE_SIZES = (8, 16, 32, 64, 128, 256)  # where there is a GPU to fill
SLOW = 0.1  # seconds per image from which the sizes of slow networks are tried
AT_LEAST = 3  # sizes of the first way are tried, however slow it is
SLACK = 1.02  # of sizes this close the smallest is taken: it needs the least memory
LOST = 1.25  # a size this much slower per image than the best ends the climb
MOMENT = 0.03  # seconds of repeats per size
LONG = 0.2  # seconds of a pass that needs no repeat and no warm-up
BUDGET = 0.4  # seconds per climb, or the time of so many images if that is more:
IMAGES = 24


class Timed(NamedTuple):
    """A choice, what it takes per image, and the runner that was timed; None for the network itself."""

    choice: Choice
    seconds: float
    run: Runner | None


def choose(model: Model, shape: Sequence[int], kind: Kind, backend: str) -> Timed:
    """The fastest way to run images of shape (C, H, W): first as it is, then by copies, then exported."""
    sizes = SIZES if model.device.type == "cpu" else LARGE_SIZES
    probe = checks.pictures(shape, sizes[-1]).to(model.device)
    with unheard(model.network), evaluating(model.network):
        best: Timed | None = None
        for choice, gain, make in _ways(model, kind, backend, probe[:2]):
            if choice.backend == "onnx" and backend == "auto" and best and best.seconds < WORTH_EXPORTING:
                continue
            try:
                run = make()
                passes = _passes(model, probe, kind, run)
                if best is None:
                    seconds = climb(passes, sizes, clock_for(model.device), AT_LEAST)
                else:  # from about the best size on, as long as it pays
                    near = [size for size in sizes if 2 * size >= best.choice.size]
                    seconds = climb(passes, near, clock_for(model.device), 1, best.seconds)
            except Exception as error:  # copies and exports of any network: anything may be raised
                if best is None:
                    raise
                log.info("%s: no %s by %s (%s)", model.name, kind, choice, brief(error))
                continue
            size = best_size(seconds)
            if best is None or seconds[size] < gain * best.seconds:
                chosen = Choice(choice.backend, choice.layout, size)
                best = Timed(chosen, seconds[size], None if choice.backend == "untouched" else run)
    assert best is not None
    return best


def is_tiny(model: Model, shape: Sequence[int]) -> bool:
    """Whether measuring would cost more than it saves."""
    return sum(p.numel() for p in model.network.parameters()) * shape[1] * shape[2] <= TINY


def _ways(
    model: Model, kind: Kind, backend: str, example: Tensor
) -> Iterator[tuple[Choice, float, Callable[[], Runner]]]:
    """What is timed, in order: the choice, the share of the best time it may take at most, and how it is made."""
    network = model.network
    shorter = folded(network)
    copies = "eager" if shorter is None else "folded"
    exported = kind == "forward" and backend in ("auto", "onnx")

    def copy() -> nn.Module:
        return copied(network if shorter is None else shorter)

    gain = GAIN if kind == "gradient" else 1.0
    if kind == "gradient" or shorter is None:
        yield Choice("untouched", "contiguous", 1), 1.0, lambda: untouched(network)
    for layout in get_args(Layout):
        known = layout == "contiguous" and shorter is None
        if not known and any(isinstance(module, nn.Conv2d) for module in network.modules()):
            yield Choice(copies, layout, 1), gain, lambda layout=layout: in_layout(copy(), layout)
    if exported and model.device.type == "cpu" and model.dtype == torch.float32 and onnx.installed():
        wanted = float("inf") if backend == "onnx" else GAIN
        yield Choice("onnx", "contiguous", 1), wanted, lambda: onnx.runner(copy(), _normalised(model, example))


def _normalised(model: Model, images: Tensor) -> Tensor:
    return model.normalised(images.to(model.device)).to(model.dtype)


def _passes(model: Model, probe: Tensor, kind: Kind, run: Runner) -> Callable[[int], object]:
    """One pass of so many rows, to be timed."""
    rows = _normalised(model, probe)

    def forward(size: int) -> object:
        with torch.inference_mode():
            return run(rows[:size])

    def gradient(size: int) -> object:
        return input_gradient(model, probe[:size], lambda logits: logits.amax(1), run)

    return forward if kind == "forward" else gradient


def clock_for(device: torch.device) -> Clock:
    """One thread is timed by the work it did, whatever else goes on; several, or a GPU, by the wall."""
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter

    def read() -> float:
        synchronise(device)
        return clock()

    return read


def climb(
    run: Callable[[int], object],
    sizes: Sequence[int],
    clock: Clock,
    at_least: int = AT_LEAST,
    rival: float = float("inf"),
) -> dict[int, float]:
    """Seconds per image at growing sizes, until they get worse than the best or the rival's, memory ends, or the
    budget, which grows with the cost of an image; so many sizes at least.
    """
    found: dict[int, float] = {}
    started, waiting = clock(), list(sizes)
    while waiting:
        size = waiting.pop(0)
        best = min(found.values(), default=0.0)
        if len(found) >= at_least and clock() - started + size * best > max(BUDGET, IMAGES * best):
            break
        try:
            found[size] = _seconds(run, size, clock) / size
        except Exception as error:
            if not found or not out_of_memory(error):
                raise
            break
        if len(found) == 1 and found[size] > SLOW:
            waiting = [slower for slower in SLOW_SIZES if slower > size]
        best, slow = min(found.values()), found[size] > SLOW
        if len(found) >= at_least and found[size] > (SLACK if slow and len(found) > 1 else LOST) * min(best, rival):
            break
    return found


def _seconds(run: Callable[[int], object], size: int, clock: Clock) -> float:
    """The least of some repeats after one to warm up: noise only ever adds. A long pass is timed once."""
    before = clock()
    run(size)
    best, spent = float("inf"), 0.0
    if clock() - before > LONG:
        return clock() - before
    while spent < MOMENT:
        before = clock()
        run(size)
        elapsed = clock() - before
        best, spent = min(best, elapsed), spent + max(elapsed, MOMENT / 20)
    return best


def best_size(seconds: dict[int, float]) -> int:
    """The smallest size that is about as quick per image as the quickest."""
    quickest = min(seconds.values())
    return min(size for size, cost in seconds.items() if cost <= SLACK * quickest)


def brief(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
