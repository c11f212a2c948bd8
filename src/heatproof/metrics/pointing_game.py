"""The pointing game: does the hottest pixel lie where the answer is?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from heatproof.metrics._support.regions import check_pair, regions_of, remarks
from heatproof.registry import metric
from heatproof.traits import Need
from heatproof.types import Attribution, Keep, Maps, Scored, Scores


def pointing_game(maps: Maps, regions: Keep) -> Scores:
    """The share of a map's maximal pixels that lie inside the region: the chance of a hit if one is drawn.

    1 or 0 without ties. NaN for an empty region, which nothing can hit, and for a map that is not finite.
    """
    check_pair(maps, regions)
    values = maps.flatten(1)
    highest = values == values.amax(1, keepdim=True)
    hits = (highest & regions.flatten(1)).sum(1).double() / highest.sum(1)  # 0 / 0 where the maximum is NaN
    hits[~regions.flatten(1).any(1) | ~values.isfinite().all(1)] = torch.nan
    return hits


@metric
@dataclass(frozen=True)
class PointingGame:
    """Whether the hottest pixel lies inside the region; ties count by their share.

    Paper: Zhang et al. 2018, "Top-Down Neural Attention by Excitation Backprop" (here without tolerance)
    """

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"
    needs: ClassVar[tuple[Need, ...]] = ("regions",)
    share: ClassVar[bool] = True  # of hits

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions = regions_of(attribution)
        return Scored(pointing_game(attribution.maps, regions), remarks(attribution.maps, regions))
