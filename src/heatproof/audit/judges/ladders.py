"""Ladders: for each question, maps that are known to answer it well, worse and badly.

| question | top | rungs | bottom |
|---|---|---|---|
| faithfulness, localisation | the truth | mixed with noise, shuffled, shifted, blurred | noise, the inverse |
| robustness | the truth, which stays where it is | mixed with noise, another for each changed picture | noise |
| randomisation | the truth for this model and class, noise for others | mixed with the truth for all | noise |
| axiom | integrated gradients in many steps, which add up | mixed with noise, declared to add up as before | noise |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args, get_origin

import torch
from torch import Tensor

from heatproof.attribute import attribute
from heatproof.audit.judges.graded_maps import (
    MIX,
    NOISES,
    Noise,
    Source,
    Spoilt,
    Truth,
    blind_sources,
    place_sources,
)
from heatproof.errors import HeatproofError
from heatproof.field_types import hints_of
from heatproof.methods.controls import Oracle
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.spec import recipe
from heatproof.stats.judges.evidence import Shown
from heatproof.traits import Measures
from heatproof.types import AnyMethod, Batch, Maps, Method, Model, keyed_seed

Ladder: TypeAlias = Literal["place", "stillness", "dependence", "sum"]
LADDERS: dict[Measures, Ladder] = {"robustness": "stillness", "randomisation": "dependence", "axiom": "sum"}
STEPS = 64  # of the integrated gradients at the top of the ladder of sums
FEWER = ("steps", "samples", "draws", "permutations", "count")  # fields whose half is another setting


def ladder_of(measures: Measures) -> Ladder:
    """The ladder for what a metric measures; that of places for all that is not listed."""
    return LADDERS.get(measures, "place")


@dataclass(frozen=True)
class Dependent:
    """The truth for one model and one class; for others noise of their own, mixed with a dose of the truth.

    At dose 0 it is a map that depends on model and class entirely, at dose 1 one that depends on neither.
    """

    truth: Truth
    revision: str  # of the model whose truth it is
    targets: tuple[tuple[str, int], ...]  # by picture: the class whose truth it is
    dose: float = 0.0

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        maps = self.truth(model, batch)
        own, mine = dict(self.targets), model.revision == self.revision
        for row, (name, target) in enumerate(zip(batch.ids, batch.targets.tolist(), strict=True)):
            if not (mine and own[name] == target):
                seed = keyed_seed(batch.seed, "audit dependence", name, model.revision, target)
                dice = torch.Generator().manual_seed(seed)
                noise = torch.empty(maps.shape[1:]).exponential_(2.0, generator=dice).to(maps)
                maps[row] = self.dose * maps[row] + (1 - self.dose) * noise
        return maps


@dataclass(frozen=True)
class Summing:
    """Maps that add up, mixed with noise as large as they are; what they declare to add up to stays."""

    method: IntegratedGradients
    dose: float = 0.0

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        maps = attribute(model, batch, self.method).maps
        largest = maps.abs().flatten(1).amax(1)[:, None, None]
        return (1 - self.dose) * maps + self.dose * largest * Noise()(model, batch)

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """The sum that the maps would have without noise."""
        return self.method.total(model, batch)


def ladder_sources(which: Ladder, truth: Truth, model: Model, batch: Batch) -> list[Source]:
    """The maps of known quality of a ladder, its top first."""
    if which == "place":
        return place_sources(truth)
    noises = _noises(which)
    if which == "stillness":
        rungs: list[Method] = [Spoilt(truth, "mix", dose) for dose in MIX]
        return [Source("truth", "truth", truth), *noises, *_mixed(rungs)]
    if which == "dependence":
        targets = tuple(zip(batch.ids, (int(one) for one in batch.targets.tolist()), strict=True))
        top = Dependent(truth, model.revision, targets)
        return [Source("truth", "truth", top), *noises, *_mixed([replace(top, dose=dose) for dose in MIX])]
    exact = Summing(IntegratedGradients(steps=STEPS))
    return [Source("truth", "truth", exact), *noises, *_mixed([replace(exact, dose=dose) for dose in MIX[:-1]])]


def shown_on(which: Ladder) -> tuple[Shown, ...]:
    """The rungs of a ladder and the blind maps beside them, without those of other pictures."""
    rungs = {"place": place_sources(Truth(Oracle()))}.get(which) or [
        Source("truth", "truth", Noise()),
        *_noises(which),
        *_mixed([Noise()] * (len(MIX) - (which == "sum"))),
    ]
    return tuple(Shown(one.name, one.kind, one.dose) for one in (*rungs, *blind_sources()))


def _noises(which: Ladder) -> list[Source]:
    if which == "sum":
        return [Source("noise", "noise", Summing(IntegratedGradients(steps=STEPS), 1.0))]
    return [Source(f"noise {draw}", "noise", Noise(draw)) for draw in range(NOISES)]


def _mixed(rungs: list[Any]) -> list[Source]:
    return [Source(f"mix {dose:.3g}", "mix", rung, dose) for dose, rung in zip(MIX, rungs, strict=False)]


def forms(real: Mapping[str, AnyMethod]) -> list[Source]:
    """Each real method under one other setting, where it has one."""
    found = ((name, other_form(method)) for name, method in real.items())
    return [
        Source(recipe.label(other), "variant", other, form_of=name)
        for name, other in found
        if other is not None and recipe.label(other) not in real
    ]


def other_form(method: Any) -> Any | None:
    """The method with half as many steps or samples, or with another value of a field that is a choice; None without.

    A method that can keep its largest weights alone (LIME, as its paper shows it) is tried in that form first.
    """
    if not dataclasses.is_dataclass(method):
        return None
    declared = [one for one in dataclasses.fields(method) if one.init]
    changes: list[dict[str, Any]] = [{"top": 5} for one in declared if one.name == "top" and one.default is None]
    for one in declared:
        value = getattr(method, one.name)
        if one.name in FEWER and isinstance(value, int) and value >= 2:
            changes.append({one.name: value // 2})
    hints = hints_of(type(method))
    for one in declared:
        if get_origin(hint := hints.get(one.name)) is Literal:
            changes += [{one.name: choice} for choice in get_args(hint) if choice != getattr(method, one.name)][:1]
    for change in changes:
        try:
            return replace(method, **change)  # type: ignore[type-var]
        except HeatproofError:  # fields that do not go together
            continue
    return None
