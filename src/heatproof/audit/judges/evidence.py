"""Evidence on a metric: what it says of all maps of an audit, as numbers; maps are made once for all metrics."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args, get_origin

import numpy as np
import torch
from torch import Tensor

from heatproof import engine
from heatproof.attribute import attribute
from heatproof.audit.judges.graded_maps import GRADED, Blind, Kind, Source, Truth, sources
from heatproof.audit.judges.price import Passes, passes_of
from heatproof.errors import HeatproofError, NotApplicable
from heatproof.field_types import hints_of
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.mean import Mean
from heatproof.spec import recipe
from heatproof.stats.bootstrap import FloatArray
from heatproof.traits import Measures, metric_traits
from heatproof.types import Attribution, Batch, Images, Method, Metric, Model, Scored, keyed_seed

Disturbed: TypeAlias = Literal["input", "weights"]
Size: TypeAlias = Literal["minor", "disruptive"]

RADIUS: dict[Size, float] = {"minor": 0.001, "disruptive": 5.0}  # of uniform noise, in the model's own units
SPREAD: dict[Size, float] = {"minor": 0.001, "disruptive": 0.5}  # of the factor that every weight is multiplied by
SETTINGS = 2  # other settings tried


@dataclass(frozen=True)
class Shown:
    """Which maps the scores belong to: name, kind and dose."""

    name: str
    kind: Kind
    dose: float


@dataclass(frozen=True)
class Trial:
    """Scores of the real methods before and after a disturbance, and whether the model's answer changed."""

    what: Disturbed
    size: Size
    draw: int
    changed: FloatArray  # (pictures,) 1 where the predicted class is another one
    scores: FloatArray  # (methods, pictures)


@dataclass(frozen=True)
class Evidence:
    """All that an audit knows of a metric. Scores are turned so that larger is better; NaN where there is none."""

    metric: str
    measures: Measures
    chance: float | None  # as declared
    shown: tuple[Shown, ...]
    scores: FloatArray  # (maps, pictures)
    closeness: FloatArray  # (maps, pictures) correlation of each map with the truth
    retest: FloatArray  # (seeds, maps, pictures) of the real methods and one noise
    settings: Mapping[str, FloatArray]  # by setting: (maps, pictures), likewise
    trials: tuple[Trial, ...]
    passes: Passes
    seconds: float
    higher_is_better: bool
    reasons: tuple[str, ...] = field(default=())  # why scores are missing

    def rows(self, *kinds: Kind) -> FloatArray:
        """(maps, pictures) scores of all maps of these kinds."""
        return self.scores[[at for at, one in enumerate(self.shown) if one.kind in kinds]]


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything that is put before every metric: maps, other seeds, disturbed pictures and models."""

    sources: tuple[Source, ...]
    attributions: tuple[Attribution, ...]
    closeness: FloatArray
    retested: tuple[int, ...]  # positions of the maps that are judged again
    disturbed: tuple[tuple[Disturbed, Size, int, Tensor, tuple[Attribution, ...]], ...]


def bench(truth: Truth, real: Mapping[str, Method], model: Model, batch: Batch, draws: int = 2) -> Bench:
    """Make all maps. `draws` is how many times pictures and weights are disturbed for MetaQuantus's tests."""
    everything = sources(truth, real, model, batch)
    made = tuple(attribute(model, batch, one.method) for one in everything)
    reference = made[0].maps
    close = np.stack([_correlation(one.maps, reference) for one in made])
    again = [at for at, one in enumerate(everything) if one.kind == "real" or one.name == "noise 0"]
    return Bench(tuple(everything), made, close, tuple(again), tuple(_disturbances(real, model, batch, draws)))


def _disturbances(
    real: Mapping[str, Method], model: Model, batch: Batch, draws: int
) -> list[tuple[Disturbed, Size, int, Tensor, tuple[Attribution, ...]]]:
    before = engine.forward(model, batch.images).argmax(1)
    maps = [attribute(model, batch, method).maps for method in real.values()]
    found: list[tuple[Disturbed, Size, int, Tensor, tuple[Attribution, ...]]] = []
    for draw in range(draws):
        for size in get_args(Size):
            moved = batch.showing(noisy(model, batch, RADIUS[size], draw))
            changed = engine.forward(model, moved.images).argmax(1) != before
            kept = zip(maps, real.values(), strict=True)
            found.append(
                ("input", size, draw, changed, tuple(Attribution(model, moved, method, one) for one, method in kept))
            )
            other = reweighted(model, SPREAD[size], keyed_seed(batch.seed, "audit weights", draw))
            changed = engine.forward(other, batch.images).argmax(1) != before
            explained = tuple(attribute(other, batch, method) for method in real.values())
            found.append(("weights", size, draw, changed, explained))
    return found


def noisy(model: Model, batch: Batch, radius: float, draw: int) -> Images:
    """The pictures with uniform noise up to `radius` in units of the model's normalisation, cut to [0, 1]."""
    scale = batch.images.new_tensor(model.std).view(-1, 1, 1)
    dice = batch.generators(f"audit input {draw}")
    noise = torch.stack([torch.rand(batch.images.shape[1:], generator=one) for one in dice]).to(batch.images.device)
    return (batch.images + (2 * noise - 1) * radius * scale).clamp(0, 1)


def reweighted(model: Model, spread: float, seed: int) -> Model:
    """A copy of the model, each weight multiplied by a draw from a normal distribution of mean 1."""
    network = copy.deepcopy(model.network)
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.is_floating_point():
                weight.mul_(1 + spread * torch.randn(weight.shape, generator=dice).to(weight))
    return replace(model, network=network)


def evidence(metric: Metric, on: Bench) -> Evidence:
    """Ask one metric about everything on the bench."""
    began, sign, reasons = time.process_time(), 1.0 if metric.higher_is_better else -1.0, dict[str, None]()

    def ask(judge: Metric, attribution: Attribution) -> FloatArray:
        return sign * _values(judge, attribution, reasons)

    first = on.attributions[0]
    scores = np.stack([ask(metric, one) for one in on.attributions])
    again = [on.attributions[at] for at in on.retested]
    other_seed = replace(first.batch, seed=first.batch.seed + 1)
    luck = np.stack([ask(metric, replace(one, batch=other_seed)) for one in again])
    retest = np.stack([scores[list(on.retested)], luck])
    settings = {name: np.stack([ask(other, one) for one in again]) for name, other in variants(metric)}
    trials = [
        Trial(what, size, draw, changed.cpu().numpy().astype(np.float64), np.stack([ask(metric, one) for one in made]))
        for what, size, draw, changed, made in on.disturbed
    ]
    traits = metric_traits(metric)
    return Evidence(
        metric=recipe.label(metric),
        measures=traits.measures,
        chance=traits.chance,
        shown=tuple(Shown(one.name, one.kind, one.dose) for one in on.sources),
        scores=scores,
        closeness=on.closeness,
        retest=retest,
        settings=settings,
        trials=tuple(trials),
        passes=passes_of(metric, first.model, first.batch.select([0]), on.sources[0].method, Blind("edges")),
        seconds=time.process_time() - began,
        higher_is_better=metric.higher_is_better,
        reasons=tuple(reasons),
    )


def _values(metric: Metric, attribution: Attribution, reasons: dict[str, None]) -> FloatArray:
    """The scores, NaN where there are none; reasons are collected."""
    count = len(attribution.batch)
    try:
        answer = metric(attribution)
    except (NotApplicable, HeatproofError) as error:
        reasons[str(error)] = None
        return np.full(count, np.nan)
    if isinstance(answer, Scored):
        reasons.update(dict.fromkeys(note for note in answer.notes if note))
        answer = answer.values
    values = answer.detach().cpu().double().numpy().reshape(count)
    return np.where(np.isfinite(values), values, np.nan)


def _correlation(maps: Tensor, reference: Tensor) -> FloatArray:
    """(B,) Pearson's r of each map with the truth; 0 for a constant one."""
    one, other = (each.flatten(1).double() for each in (maps, reference))
    one, other = one - one.mean(1, keepdim=True), other - other.mean(1, keepdim=True)
    size = (one.norm(dim=1) * other.norm(dim=1)).clamp_min(1e-12)
    return np.asarray(((one * other).sum(1) / size).cpu().numpy(), dtype=np.float64)


def variants(metric: Any) -> list[tuple[str, Metric]]:
    """The metric under other settings: another imputer, and other values of the fields that are choices."""
    if not dataclasses.is_dataclass(metric):
        return []
    changes: list[dict[str, Any]] = []
    for one in dataclasses.fields(metric):
        value = getattr(metric, one.name)
        if isinstance(value, Occlusion):
            other = Constant() if isinstance(value.imputer, Mean) else Mean()
            changes.insert(0, {one.name: replace(value, imputer=other)})
    hints = hints_of(type(metric))
    for one in dataclasses.fields(metric):
        hint = hints.get(one.name)
        if one.init and get_origin(hint) is Literal:
            now = getattr(metric, one.name)
            changes += [{one.name: choice} for choice in get_args(hint) if choice != now][:1]
    made = [_changed(metric, change) for change in changes]
    return [(recipe.label(one), one) for one in made if one is not None][:SETTINGS]


def _changed(metric: Any, change: Mapping[str, Any]) -> Metric | None:
    """The metric with other fields; None where they do not go together."""
    try:
        other: Metric = replace(metric, **change)
    except HeatproofError:
        return None
    return other if other.higher_is_better == metric.higher_is_better else None


def graded(shown: Sequence[Shown]) -> list[int]:
    """Positions of the truth and all its degradations."""
    return [at for at, one in enumerate(shown) if one.kind in ("truth", *GRADED)]
