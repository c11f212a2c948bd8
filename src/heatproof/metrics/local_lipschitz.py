"""The local Lipschitz estimate: the steepest change of the map per change of the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from heatproof.metrics._support.neighbours import Law, Neighbourhood, length
from heatproof.metrics._support.undefined import ZERO_MAP, is_zero, scored
from heatproof.registry import metric
from heatproof.types import Attribution, Price, Scored


@metric
@dataclass(frozen=True)
class LocalLipschitz:
    """The largest change of the map per change of the picture, among noisy copies of the picture.

    Lengths are Euclidean; the change of the picture is measured after clipping. With `scale="unit"` both maps are
    divided by the length of the original's, so that maps in different units compare; `none` leaves them as they are.
    The chance level, √2 over the noise's length, shrinks with the radius: it is the detail `chance`.

    Paper: Alvarez-Melis & Jaakkola 2018, "On the Robustness of Interpretability Methods"
    """

    radius: float = 0.02  # of the noise, in units of the pixel range
    draws: int = 10
    law: Law = "uniform"
    scale: Literal["unit", "none"] = "unit"

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["robustness"]] = "robustness"

    def __post_init__(self) -> None:
        self._neighbourhood  # noqa: B018  refuses fields that make none

    @property
    def _neighbourhood(self) -> Neighbourhood:
        return Neighbourhood(self.radius, self.draws, self.law)

    def __call__(self, attribution: Attribution, /) -> Scored:
        maps, images = attribution.maps.double(), attribution.batch.images.double()
        size = length(maps) if self.scale == "unit" else torch.ones(len(maps), dtype=torch.float64, device=maps.device)
        found = self._neighbourhood.of(attribution)
        moved = torch.stack([length(neighbour.batch.images - images) for neighbour in found], 1)
        changed = torch.stack([length(neighbour.maps - maps) for neighbour in found], 1) / size[:, None]
        slopes = torch.where(moved > 0, changed / moved, 0.0)
        chance = 2**0.5 * length(maps) / size / moved.amin(1)
        undefined = {ZERO_MAP: is_zero(maps) & (self.scale == "unit"), "no noise is left": (moved == 0).all(1)}
        return scored(slopes.amax(1), undefined, {"average": slopes.mean(1), "chance": chance})

    def cost(self) -> Price:
        return self._neighbourhood.cost()


metric.alias(
    "LocalLipschitzEstimate",
    LocalLipschitz,
    "Quantus. There, unless normalise=False, maps are divided by the maximum of their batch.",
    radius=0.1,
    draws=200,
    law="gaussian",
    scale="none",
)
