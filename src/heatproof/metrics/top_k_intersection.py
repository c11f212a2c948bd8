"""Top-k intersection: the share of the hottest pixels inside the region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch

from heatproof.errors import BadInput
from heatproof.metrics._support.pixel_ranking import Sign, inside_hottest, signed
from heatproof.metrics._support.regions import CONSTANT, EMPTY, check_pair, regions_of
from heatproof.metrics._support.sorted_pixels import rows, sorted_pixels
from heatproof.metrics._support.undefined import scored
from heatproof.registry import metric
from heatproof.types import Attribution, Keep, Maps, Price, Scored, Scores


def top_k_intersection(maps: Maps, regions: Keep, share: float) -> Scores:
    """The part of the hottest `share` of a picture's pixels that lies inside the region; ties count as a random order
    would on average.
    """
    check_pair(maps, regions)
    taken = max(1, round(share * maps[0].numel())) if len(maps) else 1
    found = [
        float(inside_hottest(sorted_pixels(values, region), np.array([float(taken)]))[0]) / taken
        for values, region in rows(maps, regions)
    ]
    return torch.tensor(found, dtype=torch.float64)


@metric
@dataclass(frozen=True)
class TopKIntersection:
    """The share of the hottest pixels that lie inside the region.

    By chance it is the region's share of the picture, which is a detail. A region smaller than the hottest pixels caps
    it: `scaled` divides by the best possible score. Ties count as a random order would on average.

    Paper: Theiner et al. 2022, "Interpretable Semantic Photo Geolocation" (there concept influence)
    """

    k: float = 0.05  # the hottest pixels' share of the picture
    sign: Sign = "signed"
    scaled: bool = False

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"

    def __post_init__(self) -> None:
        if not 0 < self.k <= 1:
            raise BadInput(f"k must be a share of the picture, above 0 and at most 1, got {self.k}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions = regions_of(attribution)
        maps = signed(attribution.maps, self.sign)
        values = top_k_intersection(maps, regions, self.k)
        inside = regions.flatten(1).sum(1).double().cpu()
        pixels = regions.shape[1] * regions.shape[2]
        best = (inside / max(1, round(self.k * pixels))).clamp(max=1)
        details = {"chance": inside / pixels, "ceiling": best}
        if self.scaled:
            values = values / best
        low, high = maps.flatten(1).cpu().aminmax(dim=1)
        found = scored(values, {EMPTY: inside == 0}, details)
        notes = (
            note or (CONSTANT if flat else "") for note, flat in zip(found.notes, (low == high).tolist(), strict=True)
        )
        return Scored(found.values, tuple(notes), details=found.details, reasons=found.reasons)

    def cost(self) -> Price:
        return Price()


metric.alias(
    "TopKIntersection",
    TopKIntersection,
    "Quantus. There k is 1000 pixels for pictures of any size, here as many of 224 × 224.",
    k=1000 / 224**2,
)
