"""Chooses back-end, memory layout and micro-batch size by timing passes of made-up pictures."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import nn

from heatproof.data._support.made_up import pictures
from heatproof.engine.backends import normalised, onnx
from heatproof.engine.backends.eager import Runner, copied, evaluating, in_layout, input_gradient, untouched
from heatproof.engine.backends.folded import folded
from heatproof.engine.checks import brief, largest
from heatproof.engine.choice import Choice, Layout
from heatproof.engine.machine import out_of_memory, synchronise
from heatproof.engine.weight_state import without_hooks
from heatproof.types import Images, Model

log = logging.getLogger("heatproof")

Kind: TypeAlias = Literal["forward", "gradient"]

DEFAULT_SIZE = 8
TINY = 5e6  # parameters × pixels, a bound on products per image: below it measuring costs more than it saves
WORTH_EXPORTING = 0.003  # seconds per image: below it a few seconds of exporting are rarely paid back
EXPORTABLE = 5e7  # parameters: exporting larger networks takes longer than most runs would gain
GAIN = 0.9  # another back-end must take at most this share of the time to justify other rounding errors
SIZES = (1, 4, 8, 16, 32, 64)
SLOW_SIZES = (1, 2, 4, 8, 16)
LARGE_SIZES = (8, 16, 32, 64, 128, 256)  # where there is a GPU to fill
SLOW = 0.1  # seconds per image from which the sizes for slow networks are tried, as long as each one is quicker
AT_LEAST = 3  # sizes that are tried of the first way, however slow it is
SLACK = 1.02  # among sizes this close in time the smallest is chosen, since it needs the least memory
LOST = 1.25  # a size this much slower per image than the best ends the climb
MOMENT = 0.03  # seconds of repeats per size
LONG = 0.2  # seconds from which one pass needs no repeat and no warm-up
BUDGET = 0.4  # seconds per climb, or the time of `IMAGES` images if that is more:
IMAGES = 24


class Timed(NamedTuple):
    """A choice, its seconds per image, and the runner that was timed."""

    choice: Choice
    seconds: float
    run: Runner


def is_tiny(model: Model, shape: Sequence[int]) -> bool:
    """Whether measuring would cost more than it saves."""
    return sum(p.numel() for p in model.network.parameters()) * shape[1] * shape[2] <= TINY


def choose(model: Model, shape: Sequence[int], kind: Kind, backend: str) -> Timed:
    """The fastest way to run images of shape (C, H, W): forward or, for gradients, forward and backward."""
    sizes = SIZES if model.device.type == "cpu" else LARGE_SIZES
    probe = pictures(shape, sizes[-1]).to(model.device)
    with without_hooks(model.network), evaluating(model.network):
        first, *others = _ways(model, kind, backend, probe[:2])
        best = _timed(first, model, probe, kind, sizes, AT_LEAST, float("inf"))
        for way in others:
            if way.choice.backend == "onnx" and backend == "auto" and best.seconds < WORTH_EXPORTING:
                continue
            near = [size for size in sizes if 2 * size >= best.choice.size]  # from about the best size on
            try:
                found = _timed(way, model, probe, kind, near, 1, best.seconds)
            except Exception as error:  # copies and exports of any network: anything may be raised
                log.info("%s: no %s by %s (%s)", model.name, kind, way.choice, brief(error))
                continue
            best = found if found.seconds < way.gain * best.seconds else best
    return best


class Way(NamedTuple):
    """A candidate: a choice yet without a size, the share of the best time that it may take, and a runner's factory."""

    choice: Choice
    gain: float
    make: Callable[[], Runner]


def _ways(model: Model, kind: Kind, backend: str, example: Images) -> Iterator[Way]:
    """Yields the candidates in the order in which they are timed."""
    network = model.network
    shorter = folded(network)

    def copy() -> nn.Module:
        return copied(network if shorter is None else shorter)

    if kind == "gradient" or shorter is None:
        yield Way(Choice("untouched", "contiguous", 1), 1.0, lambda: untouched(network))
    layouts: tuple[Layout, ...] = get_args(Layout)
    if not any(isinstance(module, nn.Conv2d) for module in network.modules()):
        layouts = ()
    for layout in layouts if shorter is not None else layouts[:1]:
        choice = Choice("eager" if shorter is None else "folded", layout, 1)
        yield Way(choice, GAIN if kind == "gradient" else 1.0, lambda layout=layout: in_layout(copy(), layout))  # type: ignore[misc]
    possible = kind == "forward" and model.device.type == "cpu" and model.dtype == torch.float32
    small = sum(parameter.numel() for parameter in network.parameters()) <= EXPORTABLE
    if possible and (backend == "onnx" or (backend == "auto" and small and onnx.installed())):
        wanted = float("inf") if backend == "onnx" else GAIN
        yield Way(Choice("onnx", "contiguous", 1), wanted, lambda: onnx.runner(copy(), normalised(model, example)))


def _timed(
    way: Way, model: Model, probe: Images, kind: Kind, sizes: Sequence[int], at_least: int, rival: float
) -> Timed:
    run, rows = way.make(), normalised(model, probe)

    def forward(size: int) -> object:
        with torch.inference_mode():
            return run(rows[:size])

    def gradient(size: int) -> object:
        return input_gradient(model, probe[:size], largest, run)

    passes = forward if kind == "forward" else gradient
    seconds = climb(passes, sizes, partial(read_clock, model.device), at_least, rival)
    size = best_size(seconds)
    return Timed(Choice(way.choice.backend, way.choice.layout, size), seconds[size], run)


def read_clock(device: torch.device) -> float:
    """Seconds: CPU time if one thread works, which other processes do not disturb; wall time for several or a GPU."""
    synchronise(device)
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    return time.process_time() if alone else time.perf_counter()


def climb(
    run: Callable[[int], object],
    sizes: Sequence[int],
    clock: Callable[[], float],
    at_least: int = AT_LEAST,
    rival: float = float("inf"),
) -> dict[int, float]:
    """Seconds per image at growing sizes, at least `at_least` of them: until they get worse than the best or the
    rival's, memory runs out, or the budget is spent, which grows with the cost of an image.
    """
    found: dict[int, float] = {}
    started, waiting = clock(), list(sizes)
    while waiting:
        size, best = waiting.pop(0), min([rival, *found.values()])
        if len(found) >= at_least and clock() - started + size * best > max(BUDGET, IMAGES * best):
            break
        try:
            found[size] = _seconds(run, size, clock) / size
        except Exception as error:
            if not found or not out_of_memory(error):
                raise
            break
        slow = found[size] > SLOW
        if slow and len(found) == 1:
            waiting = [slower for slower in SLOW_SIZES if slower > size]
        if len(found) >= at_least and found[size] > best * (1 / SLACK if slow and len(found) > 1 else LOST):
            break
    return found


def _seconds(run: Callable[[int], object], size: int, clock: Callable[[], float]) -> float:
    """The minimum of some repeats after a warm-up, since noise only adds time; a long pass is timed once."""
    best, spent, before = float("inf"), 0.0, clock()
    run(size)
    if (elapsed := clock() - before) > LONG:
        return elapsed
    while spent < MOMENT:
        before = clock()
        run(size)
        elapsed = clock() - before
        best, spent = min(best, elapsed), spent + max(elapsed, MOMENT / 20)
    return best


def best_size(seconds: dict[int, float]) -> int:
    """The smallest size that takes at most `SLACK` times the least time per image."""
    quickest = min(seconds.values())
    return min(size for size, cost in seconds.items() if cost <= SLACK * quickest)
