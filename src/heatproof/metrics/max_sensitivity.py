"""Max- and average sensitivity: how far a map moves under small noise on its picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.metrics._support.neighbours import Law, Neighbourhood, length
from heatproof.metrics._support.undefined import ZERO_MAP, is_zero, scored
from heatproof.registry import metric
from heatproof.types import Attribution, Price, Scored

CHANGED = "the model names another class for every neighbour"


def relative_changes(maps: Tensor, moved: Tensor) -> Tensor:
    """(B, …) maps and (B, draws, …) maps of neighbours -> (B, draws): |a' - a| / |a|; NaN for a zero map."""
    change: Tensor = torch.linalg.vector_norm((moved.double() - maps.double()[:, None]).flatten(2), dim=2)
    return change / length(maps)[:, None]


@dataclass(frozen=True)
class Sensitivity:
    """The base of both: the relative change of the map for each noisy copy of the picture."""

    radius: float = 0.02  # of the noise, in units of the pixel range
    draws: int = 10
    law: Law = "uniform"
    neighbours: Literal["all", "same_class"] = "all"  # or only those with the same predicted class

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["robustness"]] = "robustness"
    chance: ClassVar[float] = math.sqrt(2)  # independent maps of mean zero; a map that ignores the picture scores 0

    def __post_init__(self) -> None:
        self._neighbourhood  # noqa: B018  refuses fields that make none

    @property
    def _neighbourhood(self) -> Neighbourhood:
        return Neighbourhood(self.radius, self.draws, self.law)

    def __call__(self, attribution: Attribution, /) -> Scored:
        found = self._neighbourhood.of(attribution)
        changes = relative_changes(attribution.maps, torch.stack([neighbour.maps for neighbour in found], 1)).cpu()
        same = torch.stack([neighbour.same_class for neighbour in found], 1).cpu()
        kept = same if self.neighbours == "same_class" else torch.ones_like(same)
        mean = changes.where(kept, 0.0).sum(1) / kept.sum(1)
        most = changes.where(kept, 0.0).amax(1)
        values = most if self.highest else mean
        details = {"max": most, "average": mean, "changed_class": (~same).double().mean(1)}
        return scored(values, {ZERO_MAP: is_zero(attribution.maps), CHANGED: ~kept.any(1)}, details)

    highest: ClassVar[bool] = False

    def cost(self) -> Price:
        return self._neighbourhood.cost()


@metric
@dataclass(frozen=True)
class MaxSensitivity(Sensitivity):
    """The largest relative change of the map among noisy copies of the picture.

    It grows with the number of draws: compare only runs with equally many. A map that ignores the picture
    scores a perfect 0, so read it beside the blind controls.

    Paper: Yeh et al. 2019, "On the (In)fidelity and Sensitivity of Explanations"
    """

    highest: ClassVar[bool] = True


@metric
@dataclass(frozen=True)
class AvgSensitivity(Sensitivity):
    """The mean relative change of the map over noisy copies of the picture.

    A map that ignores the picture scores a perfect 0, so read it beside the blind controls.

    Paper: Yeh et al. 2019, "On the (In)fidelity and Sensitivity of Explanations"
    """


for _name, _kind in (("MaxSensitivity", MaxSensitivity), ("AvgSensitivity", AvgSensitivity)):
    metric.alias(
        _name,
        _kind,
        "Quantus. There noise is in units of the model's input, a changed class goes unnoticed, a zero map is NaN.",
        radius=0.2,
        draws=200,
    )
metric.alias(
    "sensitivity_max",
    MaxSensitivity,
    "captum. There noise is in units of the model's input and has no seed, and a zero map counts as one of length 1.",
    radius=0.02,
    draws=10,
)
metric.alias(
    "AverageStability",
    AvgSensitivity,
    "xplique. There the distance is not divided by the map's length, and all images share their noise.",
    radius=0.1,
    draws=20,
    law="brighter",
)
