"""How far each method stands from its own limit, and from the library people would otherwise use.

    python benchmarks/methods.py
    python benchmarks/methods.py --models efficientnet-lite0 --methods xrai,blur_ig,guided_ig --full

A method's limit is its passes times the time measured for such a pass in the same run; what is above the limit is the
code around the passes. A pass is the best one for as many rows as the method can ask for at once: a walk whose every
step needs the one before has no more rows than images, and fewer once some of them have arrived. Methods that must hear
or change the network's own layers are held against passes of that network, all others against the best there is (batch
norms folded, memory layout). Walks that may end early are held against the rows they really requested. References run
the same settings on the same images, and stand against the same limit.

A machine's speed changes from second to second, so passes run before and after the method, each time about as long as
it does, and the ratio is taken within such a round; of the rounds the one with the middle ratio is printed (`×limit`).
`×best` is stricter than a machine of changing speed can be: the quickest run over the passes times the quickest pass of
all. Seconds are of the wall and of the processor: on a busy machine only the latter tells something. Least disturbed is
`×self`: the method's processor time over what it spent inside its own passes, in a run of its own whose clocks take
time too. Methods that would take longer than `--patience` seconds run with fewer steps, marked `*`; all but XRAI,
Blur IG and Guided IG, whose work around the passes does not grow with them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from references import REFERENCES
from torch import Tensor
from watching import counting, inside

from heatproof import engine, registry
from heatproof.attribute import attribute
from heatproof.engine.backends.eager import input_gradient, untouched
from heatproof.errors import HeatproofError, NotApplicable
from heatproof.methods._support.shared_passes import reading, slopes
from heatproof.models import load
from heatproof.types import Batch, Cost, Model, read

FEW: dict[str, dict[str, Any]] = {
    "agi": {"classes": 4, "steps": 3},
    "attexplore": {"steps": 2, "draws": 8},
    "blur_ig": {"steps": 16},
    "boundary_ig": {"steps": 16, "attack_steps": 8, "bisections": 2},
    "expected_gradients": {"draws": 16},
    "gradient_shap": {"draws": 16},
    "guided_ig": {"steps": 16},
    "ig_smoothgrad": {"steps": 4, "draws": 4},
    "integrated_gradients": {"steps": 16},
    "isa": {"rounds": 4, "steps": 2},
    "kernel_shap": {"samples": 64},
    "lime": {"samples": 400},
    "local_attribution": {"classes": 4, "steps": 3},
    "mfaba": {"steps": 12},
    "occlusion": {"positions": 7},
    "rise": {"masks": 96},
    "score_cam": {"limit": 64},
    "shapley": {"permutations": 2},
    "smoothgrad": {"draws": 12},
    "xrai": {"steps": 8},
}
NOT_ONLY_PASSES = ("xrai", "blur_ig", "guided_ig")
COUNTED = ("agi", "mfaba", "boundary_ig")  # walks that may end early
COUNTED += ("arch_attribute", "kernel_shap", "pred_diff", "shapley", "score_cam")  # by segments, by layer
STEP_BY_STEP = ("guided_ig", "mfaba", "boundary_ig", "isa")
NETWORK_ITSELF = ("lrp", "guided_grad_cam", "attention_rollout")
NETWORK_ITSELF += ("grad_cam", "grad_cam_pp", "layer_cam")


MOMENT = 0.3  # seconds: what is shorter is repeated
LONGEST = 4.0  # seconds of passes are enough, however long a method takes


Shares = Mapping[int, float]  # rows at a time -> their share of all rows


class Seconds(NamedTuple):
    """Of the wall, of the processor, and the least by the wall."""

    wall: float
    cpu: float
    least: float

    def __truediv__(self, parts: float) -> Seconds:
        return Seconds(self.wall / parts, self.cpu / parts, self.least / parts)


def timed(work: Callable[[], Any], moment: float = 0.0) -> Seconds:
    """The mean of as many runs as a moment holds, and at least one."""
    wall, cpu, each = time.perf_counter(), time.process_time(), []
    while not each or time.perf_counter() - wall < moment:
        begin = time.perf_counter()
        work()
        each.append(time.perf_counter() - begin)
    runs = len(each)
    return Seconds((time.perf_counter() - wall) / runs, (time.process_time() - cpu) / runs, min(each))


class Round(NamedTuple):
    """A method's time, and the limit measured around it."""

    time: Seconds
    limit: Seconds

    @property
    def ratio(self) -> float:
        return self.time.cpu / self.limit.cpu if self.limit.cpu else 0.0


def middle(rounds: list[Round]) -> Round:
    return sorted(rounds, key=lambda found: found.ratio)[(len(rounds) - 1) // 2]


@dataclass(frozen=True)
class Stage:
    """A model, pictures for it, and what passes cost it."""

    model: Model
    batch: Batch

    def work(self, kind: str, rows: int, itself: bool) -> tuple[Callable[[], Any], int]:
        """One pass of a micro-batch at its best size for so many rows at a time, and how many rows that is."""
        model, batch = self.model, self.batch
        way = engine.settled(model, batch.images, "forward" if kind == "forward" else "gradient")
        size = min(way.choice.size, rows)
        which = torch.arange(size) % len(batch)
        images, aims = batch.images[which], batch.targets[which]
        run = untouched(model.network) if itself else way.run
        if kind == "forward":
            return (lambda: _answer(model, images, run)), size
        if kind == "gradient":
            return (lambda: input_gradient(model, images, lambda logits: read(logits, aims, "logit"), run)), size
        pair = torch.stack([aims, aims], 1)
        return (lambda: slopes(model, images, pair, reading("logit"), way)), size

    def passes(self, cost: Cost, shares: Shares, itself: bool, moment: float = MOMENT) -> Seconds:
        """The limit of so many passes, measured for a moment now."""
        limits = [(self._passes(cost, rows, itself, moment * share), share) for rows, share in shares.items()]
        return Seconds(*(sum(limit[clock] * share for limit, share in limits) for clock in range(len(Seconds._fields))))

    def _passes(self, cost: Cost, rows: int, itself: bool, moment: float) -> Seconds:
        found: dict[str, Seconds] = {}
        kinds = {"forward": cost.forward > cost.backward, "gradient": cost.backward > 0}
        kinds["two"] = cost.backward > cost.forward
        for kind in (kind for kind, needed in kinds.items() if needed):
            work, size = self.work(kind, rows, itself)
            found[kind] = timed(work, moment) / size
        pairs = min(cost.forward, cost.backward)
        limits = []
        for clock in range(len(Seconds._fields)):
            of = {kind: seconds[clock] for kind, seconds in found.items()}
            more = max(0.0, of.get("two", 0.0) - of.get("gradient", 0.0))
            alone = (cost.forward - pairs) * of.get("forward", 0.0) + (cost.backward - pairs) * more
            limits.append(pairs * of.get("gradient", 0.0) + alone)
        return Seconds(*limits)


def _answer(model: Model, images: Tensor, run: Callable[[Tensor], Any]) -> Any:
    with torch.inference_mode():
        return run(model.normalised(images))


def counted_passes(stage: Stage, method: Any) -> tuple[Cost, dict[int, float]]:
    """The passes a method really asks for per image, and how many rows at a time: a run of its own, not timed."""
    batch = stage.batch
    fresh = Batch(batch.images, batch.targets, batch.ids)  # answers are kept per batch
    with counting() as requested:
        attribute(stage.model, fresh, method)
    return requested.cost(len(batch)), requested.shares()


def pictures(count: int, side: int) -> Tensor:
    """Pictures with the spectrum of photos (1/f) and their edges: the cost of segmentation depends on it."""
    rng = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side))
    frequency[0, 0] = 1
    phases = np.fft.fft2(rng.normal(size=(count, 3, side, side))) / frequency
    smooth = np.real(np.fft.ifft2(phases))
    levels = np.quantile(smooth, np.linspace(0.02, 0.98, 12), axis=(2, 3))
    steps = sum((smooth > level[..., None, None]) * 1.0 for level in levels) / len(levels)
    span = np.ptp(smooth, axis=(2, 3), keepdims=True)
    mixed = 0.7 * steps + 0.3 * (smooth - smooth.min((2, 3), keepdims=True)) / span
    return torch.from_numpy(mixed).float().clamp(0, 1)


def staged(spec: str, count: int) -> Stage:
    model = load(spec)
    side = model.view.size if model.view else 64
    images = pictures(count, side)
    targets = engine.forward(model, images).argmax(1)
    return Stage(model, Batch(images, targets, tuple(f"picture{i}" for i in range(count))))


def cost_of(method: Any) -> Cost:
    known = getattr(method, "cost", None)
    return known() if known else Cost(0, 0)


def chosen(name: str, stage: Stage, options: argparse.Namespace) -> tuple[Any, str]:
    """The method at its own settings, or at shorter ones where those would take too long, and a mark."""
    method = registry.find("method", name)
    if options.full or name in NOT_ONLY_PASSES or name not in FEW:
        return method, ""
    cost, count = cost_of(method), len(stage.batch)
    once = stage.passes(Cost(1, 1), {count: 1.0}, False).wall
    if (cost.forward + cost.backward) / 2 * once * count < options.patience:
        return method, ""
    return registry.find("method", name, **FEW[name]), "*"


def line(name: str, stage: Stage, options: argparse.Namespace) -> str:
    method, mark = chosen(name, stage, options)
    label = name + mark
    model, batch, count = stage.model, stage.batch, len(stage.batch)
    begin = time.perf_counter()
    try:
        quick = registry.find("method", name, **FEW.get(name, {}))
        attribute(model, batch.select([0]), quick)  # warm: plans are made, libraries imported
        cost, shares = cost_of(method), {count: 1.0}
        if name in COUNTED:
            cost, shares = counted_passes(stage, method)
    except NotApplicable as error:
        return f"{label:22} not applicable: {str(error)[:110]}"
    if name not in STEP_BY_STEP:  # all at once, if it wants
        shares = {int(count * max(1, cost.forward)): 1.0}
    itself = name in NETWORK_ITSELF
    rounds: list[Round] = []
    before = stage.passes(cost, shares, itself)
    least = before.least
    for _ in range(options.repeats):
        run = timed(partial(_explain, stage, method), MOMENT)
        after = stage.passes(cost, shares, itself, min(max(run.wall, MOMENT), LONGEST))
        limit = Seconds(*((one + other) / 2 for one, other in zip(before, after, strict=True)))
        least = min(least, before.least, after.least)
        rounds.append(Round(run / count, limit))
        before = after
        if time.perf_counter() - begin > options.patience:
            break
    around: list[float] = []
    timed(partial(_watched, stage, method, around), MOMENT)
    ours, limit = middle(rounds)
    text = (
        f"{label:22} {cost.forward:7.1f} {cost.backward:7.1f} {limit.wall:9.4f} {ours.wall:9.4f} {_ratios(ours, limit)}"
    )
    quickest = min(found.time.least for found in rounds)
    text += f" {quickest / least:6.2f} {np.mean(around):6.2f}" if limit.wall else f" {'-':>6} {'-':>6}"
    reference = REFERENCES.get(name)
    if reference is None or (mark and not reference.shortens):
        return text
    try:
        ready = reference.prepare(model, batch, method)
        ready()
        theirs = timed(ready, MOMENT) / reference.images(batch)
    except Exception as error:  # a library that cannot run this model is a finding, not a failure of ours
        return f"{text}   {reference.library}: {type(error).__name__}: {str(error)[:60]}"
    gain = f"{theirs.wall / ours.wall:6.2f} {theirs.cpu / ours.cpu:6.2f}"
    return f"{text}   {reference.library:16} {theirs.wall:9.4f} {_ratios(theirs, limit)} {gain}"


def _explain(stage: Stage, method: Any) -> None:
    """One run on a fresh batch: segments are kept per batch."""
    batch = stage.batch
    attribute(stage.model, Batch(batch.images, batch.targets, batch.ids), method)


def _watched(stage: Stage, method: Any, around: list[float]) -> None:
    """The same with a clock at every pass: adds the processor time over that inside passes."""
    with inside(stage.model) as spent:
        seconds = timed(partial(_explain, stage, method))
    around.append(seconds.cpu / sum(spent) if spent else float("nan"))


def _ratios(time: Seconds, limit: Seconds) -> str:
    if not limit.wall:
        return f"{'-':>6} {'-':>6}"
    return f"{time.wall / limit.wall:6.2f} {time.cpu / limit.cpu:6.2f}"


def report(spec: str, options: argparse.Namespace) -> None:
    try:
        stage = staged(spec, options.batch)
    except HeatproofError as error:
        print(f"\n{spec}: {error}")
        return
    wanted = options.methods.split(",") if options.methods else registry.names("method")
    with engine.threads_for([stage.model]), engine.use(engine.Engine()):  # where memory is kept other sizes are best
        gradient, forward = (stage.passes(Cost(1, back), {10**6: 1.0}, False, 1.0) for back in (1, 0))
        print(
            f"\n{spec}, {options.batch} images of {stage.batch.images.shape[-1]}², {torch.get_num_threads()} threads. "
            f"Per image: forward {forward.wall * 1e3:.2f} ms (processor {forward.cpu * 1e3:.2f}), "
            f"with backward {gradient.wall * 1e3:.2f} ms (processor {gradient.cpu * 1e3:.2f})"
        )
        head = f"{'method':22} {'forward':>7} {'backw.':>7} {'limit s':>9} {'time s':>9}"
        head += f" {'×limit':>6} {'(cpu)':>6} {'×best':>6} {'×self':>6}"
        print(f"{head}   {'reference':16} {'time s':>9} {'×limit':>6} {'(cpu)':>6} {'gain':>6} {'(cpu)':>6}")
        for name in wanted:
            try:
                print(line(name, stage, options), flush=True)
            except HeatproofError as error:
                print(f"{name:22} failed: {error}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", default="efficientnet-lite0,embedded:object")
    parser.add_argument("--methods", default="", help="comma-separated; all that are registered by default")
    parser.add_argument("--batch", type=int, default=8, help="images")
    parser.add_argument("--repeats", type=int, default=5, help="at most; the middle one counts")
    parser.add_argument("--patience", type=float, default=8.0, help="seconds before a method is given fewer steps")
    parser.add_argument("--full", action="store_true", help="published settings, however long they take")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    for spec in options.models.split(","):
        report(spec, options)
    print(f"\n{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
