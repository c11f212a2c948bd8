"""How far each method stands from its own limit, and from the library people would otherwise use.

    python benchmarks/methods.py --quick
    python benchmarks/methods.py --models efficientnet-lite0 --methods xrai,blur_ig,guided_ig --batch 8

A method's limit is its passes times the best time measured for such a pass in the same run; what is above the
limit is the code around the passes. Walks that may end early are held against the passes they really took.
References run the same settings on the same images, and stand against the same limit.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from references import REFERENCES
from torch import Tensor, nn

from heatproof import recipe, registry
from heatproof.errors import HeatproofError, NotApplicable
from heatproof.methods.passes import reading, slopes
from heatproof.models import engine, load
from heatproof.types import Batch, Cost, Model, attribute

QUICK: dict[str, dict[str, Any]] = {
    "agi": {"classes": 2, "steps": 3},
    "attexplore": {"steps": 2, "draws": 4},
    "blur_ig": {"steps": 8},
    "boundary_ig": {"steps": 8, "attack_steps": 4, "bisections": 2},
    "expected_gradients": {"draws": 8},
    "gradient_shap": {"draws": 8},
    "guided_ig": {"steps": 8},
    "integrated_gradients": {"steps": 8},
    "isa": {"rounds": 3, "steps": 2},
    "lime": {"samples": 64},
    "local_attribution": {"classes": 2, "steps": 3},
    "mfaba": {"steps": 8},
    "occlusion": {"positions": 7},
    "rise": {"masks": 64},
    "xrai": {"steps": 8},
}
NOT_ONLY_PASSES = ("xrai", "blur_ig", "guided_ig")
ENDS_EARLY = ("agi", "mfaba", "boundary_ig")


@dataclass(frozen=True)
class PassTimes:
    """Seconds per image at best: a forward, a forward with its backward, one more backward of the same."""

    forward: float
    gradient: float
    backward: float

    def limit(self, cost: Cost) -> float:
        pairs = min(cost.forward, cost.backward)
        return pairs * self.gradient + (cost.forward - pairs) * self.forward + (cost.backward - pairs) * self.backward


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_clock = time.perf_counter


def best(work: Callable[[], Any], repeats: int) -> float:
    """The shortest of some runs: what the machine can do when nothing else disturbs it."""
    found = []
    for _ in range(repeats):
        begin = _clock()
        work()
        found.append(_clock() - begin)
    return min(found)


def measure_passes(model: Model, batch: Batch, repeats: int = 5) -> PassTimes:
    # Several micro-batches per call, as methods ask for them: a call's own cost is not a pass's.
    many = {kind: 4 * engine.batch_size(model, batch.images, kind) for kind in ("forward", "gradient")}
    shown = {kind: batch.images[torch.arange(rows) % len(batch)] for kind, rows in many.items()}
    aims = batch.targets[torch.arange(many["gradient"]) % len(batch)]
    pair = torch.stack([aims, aims], 1)
    runs: dict[str, tuple[Callable[[], Any], int]] = {
        "forward": (partial(engine.forward, model, shown["forward"]), many["forward"]),
        "gradient": (partial(engine.gradient, model, shown["gradient"], aims), many["gradient"]),
        "two": (partial(slopes, model, shown["gradient"], pair, reading("logit")), many["gradient"]),
    }
    seconds = {name: best(work, 1 + repeats) / rows for name, (work, rows) in runs.items()}
    return PassTimes(seconds["forward"], seconds["gradient"], max(0.0, seconds["two"] - seconds["gradient"]))


class _Tap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: dict[str, int]) -> Tensor:
        ctx.counts = counts
        return x.clone()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        ctx.counts["backward"] += len(slope)
        return slope, None


def counted_passes(model: Model, batch: Batch, method: Any) -> Cost:
    """The passes a method really takes per image, padding included: a run of its own, not timed."""
    counts = {"forward": 0, "backward": 0}

    def hear(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        counts["forward"] += len(output)
        return _Tap.apply(output, counts) if output.requires_grad else output  # type: ignore[no-any-return]

    hook = model.network.register_forward_hook(hear)
    try:
        attribute(model, batch, method)
    finally:
        hook.remove()
    return Cost(counts["forward"] / len(batch), counts["backward"] / len(batch))


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


def stage(spec: str, count: int) -> tuple[Model, Batch]:
    model = load(spec)
    side = model.view.size if model.view else 64
    images = pictures(count, side)
    targets = engine.forward(model, images).argmax(1)
    return model, Batch(images, targets, tuple(f"picture{i}" for i in range(count)))


def methods(wanted: Iterable[str], quick: bool) -> Iterable[tuple[str, Any]]:
    for name in wanted:
        yield name, registry.find("method", name, **(QUICK.get(name, {}) if quick else {}))


def line(name: str, method: Any, model: Model, batch: Batch, passes: PassTimes, repeats: int) -> str:
    cost_of = getattr(method, "cost", None)
    begin = _clock()
    try:
        if name in ENDS_EARLY:
            cost = counted_passes(model, batch, method)
        else:
            cost = cost_of() if cost_of else Cost(0, 0)
            attribute(model, batch, method)  # warm: plans are made, libraries imported
    except NotApplicable as error:
        return f"{name:22} not applicable: {error}"
    warm = _clock() - begin
    repeats = 1 if warm > 60 else repeats
    fresh = [Batch(batch.images, batch.targets, batch.ids) for _ in range(repeats)]  # segments are kept per batch
    supply = iter(fresh)
    seconds = best(lambda: attribute(model, next(supply), method), repeats) / len(batch)
    limit = passes.limit(cost)
    above = f"{seconds / limit:7.2f}" if limit else "      -"
    text = f"{name:22} {cost.forward:7.1f} {cost.backward:7.1f} {limit:10.4f} {seconds:10.4f} {above}"
    reference = REFERENCES.get(name)
    if reference is None:
        return text
    try:
        ready = reference.prepare(model, batch, method)
        theirs = best(ready, 1 if warm > 20 else repeats) / reference.images(batch)
    except Exception as error:  # a library that cannot run this model is a finding, not a failure of ours
        return f"{text}   {reference.library}: {type(error).__name__}: {str(error)[:60]}"
    ratio = f"{theirs / limit:6.2f}" if limit else "     -"
    return f"{text}   {reference.library:16} {theirs:10.4f} {ratio} {theirs / seconds:6.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="few steps, two images")
    parser.add_argument("--models", default="efficientnet-lite0,embedded:object")
    parser.add_argument("--methods", default="", help="comma-separated; all that are registered by default")
    parser.add_argument("--batch", type=int, default=0, help="images; 8, or 2 with --quick")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: processor time, on a busy machine")
    options = parser.parse_args()
    global _clock
    _clock = CLOCKS[options.clock]
    warnings.simplefilter("ignore")
    count = options.batch or (2 if options.quick else 8)
    wanted = options.methods.split(",") if options.methods else registry.names("method")
    for spec in options.models.split(","):
        try:
            model, batch = stage(spec, count)
        except HeatproofError as error:
            print(f"\n{spec}: {error}")
            continue
        passes = measure_passes(model, batch)
        print(
            f"\n{spec}, {count} images of {batch.images.shape[-1]}², {torch.get_num_threads()} threads. "
            f"Per image: forward {passes.forward * 1e3:.2f} ms, with backward "
            f"{passes.gradient * 1e3:.2f} ms, one more backward {passes.backward * 1e3:.2f} ms"
        )
        print(
            f"{'method':22} {'forward':>7} {'backw.':>7} {'limit s':>10} {'time s':>10} {'×limit':>7}   "
            f"{'reference':16} {'time s':>10} {'×limit':>6} {'gain':>6}"
        )
        for name, method in methods(wanted, options.quick):
            try:
                print(line(name, method, model, batch, passes, options.repeats), flush=True)
            except HeatproofError as error:
                print(f"{recipe.label(method):22} failed: {error}", flush=True)


if __name__ == "__main__":
    importlib.import_module("heatproof.methods")
    main()
