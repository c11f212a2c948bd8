"""Runs components on the CPU and on the pretend device and prints one JSON line for each: what differs, or went wrong.

python tests/any_device/sweep.py [--every=N] [KIND [NAME …]]     # every N-th registered component of a kind
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import pretend  # first, since it changes what torch is

# isort: split
import cheaper
import planted
import tiny_prior

from heatproof import engine, registry, testing
from heatproof.attribute import attribute
from heatproof.audit.energy import Energy
from heatproof.audit.float_noise import float_noise
from heatproof.audit.image_quality import MEASURES, quality
from heatproof.audit.judges.panel import audit
from heatproof.audit.other_classes import OtherClasses
from heatproof.engine import Choice, Engine
from heatproof.errors import NotApplicable
from heatproof.methods.controls import Random
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.tcav import TCAV
from heatproof.metrics._support.insignificant_patch import PatchSolver
from heatproof.metrics.fud import CONTROLS, Fud
from heatproof.metrics.grid_pointing import GridPointing
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.spec.parse import parse
from heatproof.types import Batch, Model, Scored

Case: TypeAlias = Callable[[Model, Batch], Tensor]
PICTURES = 2
CLOSE = 1e-4  # of the largest number; kernels are the same on both sides, orders of addition may differ
CHEAPER: dict[str, dict[str, object]] = {
    **cheaper.METHODS,
    **cheaper.METRICS,
    "ablation_cam": {"limit": 4},
    "integrated_gradients": {"steps": 4},
    "iir": {"solver": PatchSolver(steps=3)},
    "iir_change": {"solver": PatchSolver(steps=3)},
    "infidelity": {"count": 8},
    "sensitivity_n": {"sets": 4, "sizes": 2},
}


def mapped(method: Any, model: Model, batch: Batch) -> Tensor:
    return attribute(model, batch, method).maps


def scored(metric: Any, model: Model, batch: Batch) -> Tensor:
    """All numbers of a metric, of two methods: one needs gradients, one does not."""
    parts = []
    for method in (InputXGradient(), Random()):
        found = metric(attribute(model, batch, method))
        values = found.values if isinstance(found, Scored) else found
        details = list(found.details.values()) if isinstance(found, Scored) else []
        curve = [found.curve.y.flatten()] if isinstance(found, Scored) and found.curve else []
        parts += [numbers.double().cpu().flatten() for numbers in (values, *details, *curve)]
    return torch.cat(parts)


def played(imputer: Any, model: Model, batch: Batch) -> Tensor:
    """The answers of a game, as methods and metrics play it."""
    game = game_of(model, batch, Occlusion(imputer, Grid(4), 2))
    dice = torch.Generator().manual_seed(1)
    coalitions = torch.rand(len(batch), 3, 16, generator=dice) < 0.5
    return game.value(coalitions)


def cut(segmenter: Any, model: Model, batch: Batch) -> Tensor:
    labels: Tensor = segmenter(batch.images)
    return labels.double()


def passes(choice: Choice, model: Model, batch: Batch) -> Tensor:
    """Answers and gradients by one back-end."""
    with engine.use(Engine(always=choice)):
        answers = engine.forward(model, batch.images)
        slopes, values = engine.gradient(model, batch.images, batch.targets, "logit")
    return torch.cat([one.flatten().cpu() for one in (answers, slopes, values)])


def concept(model: Model, batch: Batch) -> Tensor:
    return TCAV(runs=10, level=1.1).importance(model, batch)


def audited(model: Model, batch: Batch) -> Tensor:
    """The cards of judges, apart from what they cost."""
    panel = audit(model, batch, ["sparseness", "single_deletion"], methods=["saliency", "grad_cam"], disturbances=1)
    cards = [{**dataclasses.asdict(card), "cost": 0.0} for card in panel.cards]
    return torch.tensor(list(numbers(cards)), dtype=torch.float64)


def numbers(value: Any) -> Iterator[float]:
    """Every number in nested data, in order."""
    if isinstance(value, dict):
        for item in value.values():
            yield from numbers(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float):
        yield float(value)


def noise(model: Model, batch: Batch) -> Tensor:
    """How far float noise moves maps; its size differs between devices, so only its order of magnitude counts."""
    return torch.tensor([float(float_noise(model, batch, InputXGradient()) < 1e-3)])


def likeness(measure: Any, model: Model, batch: Batch) -> Tensor:
    return quality(measure, (batch.images * 0.9).flip(3), batch.images)


def components(kind: registry.Kind, case: Callable[..., Tensor], every: int) -> Iterator[tuple[str, Any, Case]]:
    for name in registry.names(kind)[::every]:
        component = registry.find(kind, name, **CHEAPER.get(name, {}))
        yield name, component, partial(case, component)


def further(every: int) -> Iterator[tuple[str, Any, Case]]:
    """What no registered name reaches by its defaults."""
    for measure in MEASURES:
        yield f"image_quality {measure}", None, partial(likeness, measure)
    yield "audit of judges", None, audited
    yield "audit of float noise", None, noise
    yield "energy of other classes", None, partial(scored, Energy(OtherClasses(count=2)))
    yield "tcav importance", None, concept
    prior = tiny_prior.tiny(64)
    for control in CONTROLS:
        fud = Fud(prior=prior, controls=(control,), levels=(0.5,), draws=1)
        yield f"fud {control}", None, partial(scored, fud)
    for setting in ("grid", "disconnected", "partly_disconnected"):
        pointing = GridPointing(setting=setting)  # type: ignore[arg-type]
        yield f"grid_pointing {setting}", pointing, partial(scored, pointing)
    for backend in ("untouched", "eager", "folded"):
        for layout in ("contiguous", "channels_last"):
            choice = Choice(backend, layout, 2)  # type: ignore[arg-type]
            yield f"engine {backend} {layout}", None, partial(passes, choice)
    for text in FURTHER_METRICS:
        metric = parse("metric", text)
        yield text, metric, partial(scored, metric)


FURTHER_METRICS = ("infidelity(disturbance='gaussian', count=8)", "srg(occlusion=occlusion(imputer=telea))")


def faulty(every: int) -> Iterator[tuple[str, Any, Case]]:
    """Methods with one fault each, that a GPU would refuse."""
    for name, method in planted.METHODS.items():
        yield name, method, partial(mapped, method)


KINDS: dict[str, Callable[[int], Iterator[tuple[str, Any, Case]]]] = {
    "method": partial(components, "method", mapped),
    "metric": partial(components, "metric", scored),
    "imputer": partial(components, "imputer", played),
    "segmenter": partial(components, "segmenter", cut),
    "further": further,
    "planted": faulty,
}


usual_stage = functools.cache(testing.stage)


def stage_of(component: Any) -> tuple[Model, Batch]:
    return component.stage() if hasattr(component, "stage") else usual_stage(PICTURES)


def outcome(component: Any, case: Case) -> str:
    """What a GPU would object to, or how far its numbers are off; empty if all is well."""
    model, batch = stage_of(component)
    batch = batch.select(range(min(PICTURES, len(batch))))
    try:
        here = case(model, batch)
    except NotApplicable:
        here = None
    try:
        with pretend.Everywhere():
            moved = dataclasses.replace(model, network=copy.deepcopy(model.network)).to(pretend.DEVICE)
            there = case(moved, batch.to(pretend.DEVICE)).cpu()
    except NotApplicable:
        return "" if here is None else "does not apply on the device"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in where if "heatproof" in frame.filename and "any_device" not in frame.filename]
        place = f" in {Path(own[-1].filename).name}, line {own[-1].lineno}" if own else ""
        return f"{type(error).__name__}: {str(error)[:200]}{place}"
    if here is None:
        return "applies on the device only"
    return difference(here.cpu(), there)


def difference(here: Tensor, there: Tensor) -> str:
    if here.shape != there.shape or not torch.equal(here.isnan(), there.isnan()):
        return "other shapes or other holes than on the CPU"
    scale = float(here.nan_to_num().abs().max()) if here.numel() else 1.0
    gap = float((here - there).nan_to_num().abs().max()) if here.numel() else 0.0
    return "" if gap <= CLOSE * max(scale, 1e-12) else f"differs from the CPU by {gap:g} of {scale:g}"


def main(kinds: list[str], names: list[str], every: int) -> None:
    with engine.use(Engine(measure=False)):
        for kind in kinds or list(KINDS):
            step = every if kind == "further" else 1
            for name, component, case in islice(KINDS[kind](every), 0, None, step):
                if names and name not in names:
                    continue
                began = time.process_time()
                row = {"kind": kind, "name": name, "problem": outcome(component, case)}
                print(json.dumps({**row, "seconds": time.process_time() - began}), flush=True)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--every=")]
    counts = [int(word.removeprefix("--every=")) for word in sys.argv[1:] if word not in words]
    main(words[:1], words[1:], *(counts or [1]))
