"""Metrics, imputers, segmenters and statistics under degenerate input: a number, or a reason; nothing else.

Each call is drawn from its own seed, so that a finding is repeated by its number alone. By default some hundred calls;
the slow form makes more than 20,000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from random import Random
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from fuzz.degenerate import SIDES, batch, heat, mask, pictures, tiny_model
from fuzz.outcome import fault, number_fault, score_fault
from fuzz.statistics import CASES

from heatproof import registry
from heatproof.errors import HeatproofError
from heatproof.field_types import hints_of
from heatproof.methods.controls import Random as RandomMethod
from heatproof.occlusion.diffusion.inpaint import Sampler
from heatproof.types import Attribution, Batch, Model

# Settings at which a call takes milliseconds.
METRICS: dict[str, dict[str, Any]] = {
    "fud": {"levels": (0.9, 0.5), "draws": 1, "controls": (), "profile": "fast"},
    "infidelity": {"count": 5},
    "sensitivity_n": {"sizes": 3, "sets": 5},
    "faithfulness_correlation": {"sets": 5},
    "smooth_mprt": {"draws": 2, "stages": 2},
    "mprt": {"stages": 2},
    **{name: {"draws": 2, "sizes": (0.2, 0.5), "surrogate": None} for name in ("f_fidelity", "f_fidelity_minus")},
    **{name: {"points": 5} for name in ("mif", "lif", "srg", "insertion", "deletion")},
    **{name: {"points": 5, "orders": 2} for name in ("mrg", "lrg")},
}
IMPUTERS: dict[str, dict[str, Any]] = {"diffusion": {"sampler": Sampler(steps=2)}, "train_set": {"count": 8}}
SLOW = {"fud", "diffusion"}  # many times the cost of the others, and a fraction of their calls
# The embedded prior draws pictures of one size; what it enlarges costs as much.
LARGE = dict.fromkeys(SLOW, ((64, 64), (64, 64), (16, 16)))

Call = Callable[[Random], str]


@cache
def model() -> Model:
    return tiny_model()


@cache
def stage(name: str) -> tuple[Model, Batch]:
    return registry.find("metric", name).stage()


def varied(kind: registry.Kind, name: str, cheap: dict[str, Any], dice: Random) -> Any:
    """The component with some of its choices made by lot, or as it is where they do not go together."""
    make = registry.entry(kind, name).make
    choices = {field: get_args(hint) for field, hint in hints_of(make).items() if get_origin(hint) is Literal}
    drawn = {
        field: dice.choice(values)
        for field, values in sorted(choices.items())
        if dice.random() < 0.4 and field not in cheap
    }
    try:
        return registry.find(kind, name, **cheap, **drawn)
    except HeatproofError:
        return registry.find(kind, name, **cheap)


def metric_call(name: str) -> Call:
    staged = hasattr(registry.find("metric", name), "stage")

    def call(dice: Random) -> str:
        judge = varied("metric", name, METRICS.get(name, {}), dice)
        if staged and dice.random() < 0.5:
            network, requested = stage(name)
            requested = requested.select(dice.choice([[0], [0, 1], []]))
        else:
            network, requested = model(), batch(dice, LARGE.get(name, SIDES))
        maps = heat(dice, (len(requested), *requested.images.shape[2:]))
        return fault(
            lambda: judge(Attribution(network, requested, RandomMethod(), maps)),
            lambda answer: score_fault(answer, len(requested)),
        )

    return call


def imputer_call(name: str) -> Call:
    def call(dice: Random) -> str:
        imputer = varied("imputer", name, IMPUTERS.get(name, {}), dice)
        count, side = dice.choice([0, 1, 2]), dice.choice(LARGE.get(name, SIDES))
        images = pictures(dice, count, side)
        keep = mask(dice, (count, *side))

        def judge(filled: Any) -> str:
            if filled.shape != images.shape:
                return f"shape {tuple(filled.shape)} for {tuple(images.shape)}"
            if not bool(filled.isfinite().all()):
                return "pixels that are not finite"
            if filled.numel() and not (float(filled.min()) >= 0 and float(filled.max()) <= 1):
                return "pixels outside [0, 1]"
            shown = keep[:, None].expand_as(images)
            return "" if torch.equal(filled[shown], images[shown]) else "visible pixels were changed"

        return fault(lambda: imputer(images, keep, seeds=list(range(count))), judge)

    return call


def segmenter_call(name: str) -> Call:
    def call(dice: Random) -> str:
        segmenter = varied("segmenter", name, {}, dice)
        images = pictures(dice, dice.choice([0, 1, 2]), dice.choice(SIDES))

        def judge(segments: Any) -> str:
            if segments.shape != (len(images), *images.shape[2:]) or segments.dtype != torch.int64:
                return f"{segments.dtype} of shape {tuple(segments.shape)} for {tuple(images.shape)}"
            whole = all(torch.equal(one.unique(), torch.arange(int(one.max()) + 1)) for one in segments)
            return "" if whole else "labels with gaps"

        return fault(lambda: segmenter(images), judge)

    return call


def statistic_call(name: str) -> Call:
    case = CASES[name]
    return lambda dice: fault(lambda: case.call(dice), lambda answer: number_fault(answer, case.undefined))


KINDS: dict[str, tuple[Callable[[str], Call], list[str]]] = {
    "metric": (metric_call, registry.names("metric")),
    "imputer": (imputer_call, registry.names("imputer")),
    "segmenter": (segmenter_call, registry.names("segmenter")),
    "statistic": (statistic_call, sorted(CASES)),
}
EVERYTHING = [(kind, name) for kind, (_, names) in KINDS.items() for name in names]


def findings(kind: str, name: str, seeds: Iterable[int]) -> dict[str, str]:
    """What went wrong, once per kind of fault, with the seed of its first call and how often."""
    make, _ = KINDS[kind]
    call = make(name)
    times: Counter[str] = Counter()
    first: dict[str, int] = {}
    for seed in seeds:
        output = call(Random(f"{kind} {name} {seed}"))
        if output:
            times[output] += 1
            first.setdefault(output, seed)
    return {output: f"seed {first[output]}, {count} times" for output, count in times.items()}


@pytest.mark.parametrize(("kind", "name"), EVERYTHING, ids=[f"{kind}-{name}" for kind, name in EVERYTHING])
def test_a_number_or_a_reason(kind: str, name: str) -> None:
    assert findings(kind, name, range(1 if name in SLOW else 5)) == {}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), EVERYTHING, ids=[f"{kind}-{name}" for kind, name in EVERYTHING])
def test_a_number_or_a_reason_often(kind: str, name: str) -> None:
    assert findings(kind, name, range(10, 20 if name in SLOW else 240)) == {}
