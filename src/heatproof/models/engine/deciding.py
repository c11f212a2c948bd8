"""Which back-end, layout and micro-batch size? Found out by measuring, on made-up pictures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from heatproof.errors import Missing
from heatproof.models.engine import measure, onnx, vetting
from heatproof.models.engine.choice import Choice, Layout, Way, fewer
from heatproof.models.engine.making import brief, copied
from heatproof.models.engine.running import Runner, eager, evaluating, input_gradient, unheard, untouched
from heatproof.models.engine.setting import Settings
from heatproof.types import Images, Logits, Model

log = logging.getLogger("heatproof")

DEFAULT_SIZE = 8
TINY = 5e6  # parameters × pixels, a bound on products per image: below it measuring costs more than it saves
WORTH_EXPORTING = 0.003  # seconds per image: below it a few seconds of exporting are rarely paid back
GAIN = 0.9  # a back-end must take at most this share of eager's time to be worth other float errors
GRADIENT_BUDGET = 1.2  # seconds: a pass costs about three forwards
COMPARED = 4
ONNX_SIZES = (1, 4, 8, 16)
LAYOUTS: tuple[Layout, ...] = ("channels_last", "contiguous")


def decide(
    model: Model, shape: Sequence[int], kind: Literal["forward", "gradient"], settings: Settings
) -> tuple[Choice, bool]:
    """A choice for images of shape (C, H, W), and whether it was measured."""
    work = sum(p.numel() for p in model.network.parameters()) * shape[1] * shape[2]
    measured = settings.measure and work > TINY
    probe = vetting.pictures(shape, max(measure.sizes(model.device)) if measured else 2)
    with unheard(model.network), evaluating(model.network):
        if kind == "gradient":
            return _for_gradients(model, probe, measured), measured
        return _for_forwards(model, probe, settings, measured), measured


def _for_gradients(model: Model, probe: Images, measured: bool) -> Choice:
    """The network itself, or a copy of it where that is clearly quicker back and forth."""
    if not measured:
        return Choice("untouched", "contiguous", DEFAULT_SIZE)
    device = model.device
    own = _back(model)
    chosen: tuple[Way, Layout] = ("untouched", "contiguous")
    passes, quickest = own, GAIN * _at_first(own, probe, device)
    for layout in LAYOUTS:
        copy = copied(model.network)
        if copy is None or chosen != ("untouched", "contiguous"):
            break
        way = _back(model, eager(copy[1], layout))
        try:
            seconds = _at_first(way, probe, device)
        except Exception as error:  # it views its activations as if they were contiguous, or writes them in place
            log.info("%s: no gradients by %s, %s (%s)", model.name, copy[0], layout, brief(error))
            continue
        if seconds < quickest:
            chosen, passes = (copy[0], layout), way
    climbed = measure.climb(lambda size: passes(probe[:size]), measure.sizes(device), device, GRADIENT_BUDGET)
    size = _standing_alone(passes, probe, measure.best_size(climbed))
    size = _standing_alone(own, probe, size) if passes is not own else size  # it runs too, where hooks listen
    itself = _least(own, probe, size, every=True)
    least = itself if passes is own else _least(passes, probe, size, every=True)
    return Choice(*chosen, size, least, itself, every=True)


def _back(model: Model, run: Runner | None = None) -> Callable[[Images], Tensor]:
    """All that a caller may see of a pass, row by row: gradients through all logits, and the logits."""

    def passes(rows: Images) -> Tensor:
        said: list[Tensor] = []

        def value(logits: Logits) -> Tensor:
            said.append(logits.detach())
            return logits.log_softmax(1).amax(1)

        gradients, _ = input_gradient(model, rows, value, run)
        return torch.cat([gradients.flatten(1), said[0].to(gradients)], 1)

    return passes


def _at_first(passes: Callable[[Images], Tensor], probe: Images, device: torch.device) -> float:
    """Seconds per row at the size where ways to the gradient are compared, before the quickest is climbed."""
    return measure.climb(lambda size: passes(probe[:size]), (COMPARED,), device)[COMPARED]


def _for_forwards(model: Model, probe: Images, settings: Settings, measured: bool) -> Choice:
    if settings.backend == "onnx" and not onnx.installed():
        raise Missing.package("onnxruntime", "onnx", "The ONNX back-end")
    copy = copied(model.network)
    if copy is None:
        return Choice("untouched", "contiguous", DEFAULT_SIZE)
    if not measured:
        asked = settings.backend if settings.backend in ("onnx", "compile") else copy[0]
        return Choice(asked, "contiguous", DEFAULT_SIZE)
    rows = vetting.presented(model, probe)
    cost, choice = _among_layouts(model, copy, rows, settings)
    if settings.backend == "compile":
        return replace(choice, backend="compile", least=0)  # which nobody looked at
    possible = rows.device.type == "cpu" and rows.dtype == torch.float32 and settings.precision == "full"
    promising = settings.backend == "auto" and cost > WORTH_EXPORTING and onnx.installed()
    if possible and (promising or settings.backend == "onnx"):
        limit = GAIN * cost if settings.backend == "auto" else float("inf")
        return _by_onnx(model, rows, limit) or choice
    return choice


def _among_layouts(
    model: Model, copy: tuple[Literal["folded", "eager"], nn.Module], rows: Tensor, settings: Settings
) -> tuple[float, Choice]:
    """Seconds per row at its best, and the layout and size that give it."""
    found: list[tuple[float, Choice]] = []
    for layout in LAYOUTS:
        run = eager(copy[1], layout, settings.precision)
        try:
            seconds = _climb(run, rows, measure.sizes(rows.device))
        except Exception:  # a network that views its activations as if they were contiguous
            if layout == "contiguous":
                raise
            continue
        size = measure.best_size(seconds)
        found.append((seconds[size], _settled(model, (copy[0], layout), run, rows, size)))
    return min(found, key=lambda pair: pair[0])


def _by_onnx(model: Model, rows: Tensor, limit: float) -> Choice | None:
    """ONNX Runtime, if it can run this network in less than `limit` seconds per row."""
    try:
        copy = copied(model.network)
        run = onnx.runner(copy[1] if copy else model.network, rows[:2])
        seconds = _climb(run, rows, ONNX_SIZES)
        size = measure.best_size(seconds)
        if seconds[size] < limit:
            return _settled(model, ("onnx", "contiguous"), run, rows, size)
    except Exception as error:  # exporters meet a stranger's network: anything may be raised
        log.warning("%s: not run by ONNX Runtime, eager is used instead (%s)", model.name, brief(error))
    return None


def _climb(run: Runner, rows: Tensor, sizes: Sequence[int]) -> dict[int, float]:
    with torch.inference_mode():
        return measure.climb(lambda size: run(rows[:size]), sizes, rows.device)


def _settled(model: Model, way: tuple[Way, Layout], run: Runner, rows: Tensor, size: int) -> Choice:
    size = _standing_alone(run, rows, size)
    return Choice(*way, size, _least(run, rows, size), _least(untouched(model.network), rows, size))


def _least(run: Callable[[Tensor], Tensor], rows: Tensor, size: int, every: bool = False) -> int:
    """The smallest number of rows at which, as at all larger ones up to the size, every row gets the same bits.

    `every` number only where a row's answer is many numbers: of few some agree by chance.
    """
    least = size
    with torch.inference_mode():
        whole = _tensor(run(rows[:size]))
        for number in fewer(size, every):
            # Each row in one of them, or in two: what differs is often the last row only.
            parts = [slice(first, first + number) for first in (*range(0, size - number, number), size - number)]
            if not all(torch.equal(_tensor(run(rows[part])), whole[part]) for part in parts):
                break
            least = number
    return least


def _standing_alone(run: Callable[[Tensor], Tensor], rows: Tensor, size: int) -> int:
    """The largest size up to this at which a row's bits do not depend on its place or its neighbours."""
    while size > 1:
        first = rows[:size]
        second = first.roll(1, 0)
        second[0] = 1 - second[0]  # one neighbour less, one more
        with torch.inference_mode():
            one, other = (_tensor(run(batch)) for batch in (first, second))
        if torch.equal(one[:-1], other[1:]):
            break
        size //= 2
    return size


def _tensor(answer: object) -> Tensor:
    return answer if isinstance(answer, Tensor) else answer.logits  # type: ignore[attr-defined]
