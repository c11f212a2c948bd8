"""The bench: maps, pictures and models that are put before every metric, and what a metric says of them, as numbers.

Everything is made once for all metrics.
"""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args, get_origin

import numpy as np
import torch
from torch import Tensor

from heatproof import engine
from heatproof.attribute import attribute
from heatproof.audit.judges.graded_maps import Blind, Source, Truth, blind_sources, of_others
from heatproof.audit.judges.ladders import Ladder, forms, ladder_of, ladder_sources
from heatproof.audit.judges.price import passes_of
from heatproof.errors import HeatproofError, NotApplicable
from heatproof.field_types import hints_of
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.mean import Mean
from heatproof.spec import recipe
from heatproof.stats.bootstrap import FloatArray
from heatproof.stats.judges.evidence import Disturbed, Evidence, Shown, Size, Trial
from heatproof.traits import metric_traits
from heatproof.types import Attribution, Batch, Images, Method, Metric, Model, Scored, keyed_seed

RADIUS: dict[Size, float] = {"minor": 0.001, "disruptive": 5.0}  # of uniform noise, in the model's own units
SPREAD: dict[Size, float] = {"minor": 0.001, "disruptive": 0.5}  # of the factor that every weight is multiplied by
SETTINGS = 2  # other settings tried


@dataclass(frozen=True, eq=False)
class Rungs:
    """The maps of one ladder with all others that go with it, and how near each is to the truth."""

    sources: tuple[Source, ...]
    attributions: tuple[Attribution, ...]
    closeness: FloatArray  # (maps, pictures)

    @property
    def retested(self) -> list[int]:
        """Positions of the maps that are judged again: the real ones and a noise."""
        first = next(at for at, one in enumerate(self.sources) if one.kind == "noise")
        return [first, *(at for at, one in enumerate(self.sources) if one.kind == "real")]


@dataclass(frozen=True)
class Disturbance:
    """Pictures or a model changed, and the real methods' maps on them."""

    what: Disturbed
    size: Size
    draw: int
    changed: Tensor  # (B,) whether the predicted class is another one
    attributions: tuple[Attribution, ...]


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything that is put before metrics, made when a metric first needs it.

    `draws` is how many times pictures and weights are disturbed for MetaQuantus's tests.
    """

    truth: Truth
    real: Mapping[str, Method]
    model: Model
    batch: Batch
    draws: int = 2
    others: bool = True  # whether there are blind maps of what is right on the other pictures of the batch
    _ladders: dict[Ladder, Rungs] = field(default_factory=dict)

    def rungs(self, which: Ladder) -> Rungs:
        """The maps of a ladder, then blind, real and other forms of real ones."""
        if which not in self._ladders:
            own = ladder_sources(which, self.truth, self.model, self.batch)
            made = [attribute(self.model, self.batch, one.method) for one in own]
            rest, others = self._shared
            near = _correlations([*made, *others]) if which == "place" else _by_dose([*own, *rest], len(self.batch))
            self._ladders[which] = Rungs((*own, *rest), (*made, *others), near)
        return self._ladders[which]

    @cached_property
    def _shared(self) -> tuple[list[Source], list[Attribution]]:
        others = of_others(self.truth(self.model, self.batch), self.batch.ids) if self.others else {}
        real = [Source(name, "real", method) for name, method in self.real.items()]
        found = [*blind_sources(others), *real, *forms(self.real)]
        return found, [attribute(self.model, self.batch, one.method) for one in found]

    @cached_property
    def disturbances(self) -> tuple[Disturbance, ...]:
        """Small and large ones, of pictures and of weights."""
        return tuple(self._disturbances())

    def _disturbances(self) -> Iterator[Disturbance]:
        model, batch = self.model, self.batch
        before = engine.forward(model, batch.images).argmax(1)
        sources, made = self._shared
        maps = [one.maps for one, source in zip(made, sources, strict=True) if source.kind == "real"]
        for draw in range(self.draws):
            for size in get_args(Size):
                moved = batch.showing(noisy(model, batch, RADIUS[size], draw))
                changed = engine.forward(model, moved.images).argmax(1) != before
                kept = zip(maps, self.real.values(), strict=True)
                scored = tuple(Attribution(model, moved, method, one) for one, method in kept)
                yield Disturbance("input", size, draw, changed, scored)
                other = reweighted(model, SPREAD[size], keyed_seed(batch.seed, "audit weights", draw))
                changed = engine.forward(other, batch.images).argmax(1) != before
                explained = tuple(attribute(other, batch, method) for method in self.real.values())
                yield Disturbance("weights", size, draw, changed, explained)


def _by_dose(sources: Sequence[Source], pictures: int) -> FloatArray:
    """Closeness where it is known by construction: 1 less the dose."""
    near = [1 - one.dose if one.kind in ("truth", "mix") else 0.0 for one in sources]
    return np.repeat(np.array(near)[:, None], pictures, 1)


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

    traits = metric_traits(metric)
    shown = on.rungs(ladder_of(traits.measures))
    scores = np.stack([ask(metric, one) for one in shown.attributions])
    again = [shown.attributions[at] for at in shown.retested]
    other_seed = replace(on.batch, seed=on.batch.seed + 1)
    luck = np.stack([ask(metric, attribute(on.model, other_seed, one.explainer)) for one in again])
    trials = [
        Trial(
            one.what,
            one.size,
            one.draw,
            one.changed.cpu().numpy().astype(np.float64),
            np.stack([ask(metric, made) for made in one.attributions]),
        )
        for one in on.disturbances
    ]
    return Evidence(
        metric=recipe.label(metric),
        measures=traits.measures,
        chance=traits.chance,
        higher_is_better=metric.higher_is_better,
        shown=tuple(Shown(one.name, one.kind, one.dose, one.form_of) for one in shown.sources),
        scores=scores,
        closeness=shown.closeness,
        retest=np.stack([scores[shown.retested], luck]),
        settings={name: np.stack([ask(other, one) for one in again]) for name, other in variants(metric)},
        trials=tuple(trials),
        passes=passes_of(metric, on.model, on.batch.select([0]), Blind("centre"), Blind("edges")),
        seconds=time.process_time() - began,
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


def _correlations(made: Sequence[Attribution]) -> FloatArray:
    return np.stack([_correlation(one.maps, made[0].maps) for one in made])


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
