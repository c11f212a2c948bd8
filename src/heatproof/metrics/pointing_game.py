"""The pointing game: whether the hottest pixel lies in the region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from scipy import ndimage

from heatproof.errors import BadInput
from heatproof.metrics._support.regions import check_pair, regions_of, remarks
from heatproof.registry import metric
from heatproof.traits import Need
from heatproof.types import Attribution, Keep, Maps, Price, Scored, Scores


def near(regions: Keep, tolerance: float) -> Keep:
    """The regions dilated by a Euclidean distance of `tolerance` pixels."""
    if tolerance <= 0:
        return regions
    grown = [
        torch.from_numpy(ndimage.distance_transform_edt(~region) <= tolerance)
        if region.any()
        else torch.from_numpy(region)
        for region in regions.cpu().numpy()
    ]
    return torch.stack(grown).to(regions.device) if grown else regions


def pointing_game(maps: Maps, regions: Keep, tolerance: float = 0.0) -> Scores:
    """The share of a map's maximal pixels that lie within `tolerance` pixels of the region: the chance of a hit if one
    is drawn.

    1 or 0 without ties. NaN for an empty region, which nothing can hit, and for a map that is not finite.
    """
    check_pair(maps, regions)
    regions = near(regions, tolerance)
    values = maps.flatten(1)
    highest = values == values.amax(1, keepdim=True)
    hits = (highest & regions.flatten(1)).sum(1).double() / highest.sum(1)  # 0 / 0 where the maximum is NaN
    hits[~regions.flatten(1).any(1) | ~values.isfinite().all(1)] = torch.nan
    return hits


@metric
@dataclass(frozen=True)
class PointingGame:
    """Whether the hottest pixel lies inside the region, or within `tolerance` pixels of it; ties count by their share.

    The paper's tolerance is 15 pixels on photos. The detail `chance` is the hit rate of a random pixel: the share of
    the picture that counts as a hit.

    Paper: Zhang et al. 2018, "Top-Down Neural Attention by Excitation Backprop"
    """

    tolerance: float = 0.0  # pixels

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"
    needs: ClassVar[tuple[Need, ...]] = ("regions",)
    share: ClassVar[bool] = True  # of hits

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions = regions_of(attribution)
        hit = near(regions, self.tolerance)
        chance = hit.flatten(1).double().mean(1).cpu()
        values = pointing_game(attribution.maps, hit)
        return Scored(values, remarks(attribution.maps, regions), details={"chance": chance})

    def __post_init__(self) -> None:
        if not self.tolerance >= 0:
            raise BadInput(f"tolerance must be a number of pixels from 0, got {self.tolerance}")

    def cost(self) -> Price:
        return Price()
