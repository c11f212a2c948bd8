"""How hot a map is inside a region: the one number relative importance compares.

Normalisation is part of the metric. The paper's drops evidence against the class and scales each map by its own 99th
percentile, so what happens elsewhere in the picture moves the number; ranks and shares of mass have no scale to move.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from heatproof.errors import BadInput, NotApplicable
from heatproof.metrics.normalising import normalise
from heatproof.metrics.regions import check_pair
from heatproof.types import Batch, Keep, Maps, Scores

Rule: TypeAlias = Literal["paper", "rank", "mass"]
Law: TypeAlias = Literal["object", "moved", "anywhere", "pixels"]

FLAT = "the map is flat"


def positive_p99(maps: Maps) -> Maps:
    """The paper's heat in [0, 1]: positive part, from its minimum to its 99th percentile; a flat map is 0.

    Where the 99th percentile is the minimum (heat on under 1 % of the pixels) the maximum takes its place.
    """
    positive = maps.flatten(1).double().clamp(min=0)
    low = positive.amin(1, keepdim=True)
    high = _p99(positive)
    high = torch.where(high > low, high, positive.amax(1, keepdim=True))
    span = high - low
    heat = ((positive - low) / torch.where(span > 0, span, 1.0)).clamp(0, 1)
    return torch.where(span > 0, heat, 0.0).view(maps.shape)


def _p99(values: Tensor) -> Tensor:
    """numpy.percentile(values, 99) by row; torch.quantile refuses large pictures."""
    ascending = values.sort(1).values
    place = 0.99 * (values.shape[1] - 1)
    below = int(place)
    above = min(below + 1, values.shape[1] - 1)
    return ascending[:, [below]] + (place - below) * (ascending[:, [above]] - ascending[:, [below]])


def region_heat(maps: Maps, regions: Keep, rule: Rule = "paper") -> Scores:
    """g_c of Yang & Kim: the mean heat of each map inside its region, (B,) float64; NaN for an empty region.

    - `paper`: heat is the positive part scaled to the 99th percentile
    - `rank`: heat is the share of pixels that are colder, ties sharing their mean rank; ½ on average
    - `mass`: the region's share of the positive relevance over its share of the area; 1 where relevance is spread
      evenly, NaN for a map without positive relevance
    """
    check_pair(maps, regions)
    inside = regions.flatten(1)
    count = inside.sum(1).double()
    if rule == "mass":
        positive = maps.flatten(1).double().clamp(min=0)
        return positive.where(inside, 0.0).sum(1) / positive.sum(1) * (inside.shape[1] / count)
    if rule == "rank":
        heat = ranked(maps)
    elif rule == "paper":
        heat = positive_p99(maps)
    else:
        raise BadInput(f"rule must be one of {', '.join(get_args(Rule))}, got {rule!r}")
    return heat.flatten(1).where(inside, 0.0).sum(1) / count


def ranked(maps: Maps) -> Maps:
    """Each pixel's rank in [0, 1]; a flat map is ½ everywhere."""
    low, high = maps.flatten(1).aminmax(dim=1)
    return torch.where((low == high)[:, None, None], 0.5, normalise(maps, "rank").double())


def flat(maps: Maps, rule: Rule) -> Tensor:
    """(B,) bool: maps in which the rule finds no place hotter than another."""
    values = maps.flatten(1) if rule == "rank" else maps.flatten(1).clamp(min=0)
    low, high = values.aminmax(dim=1)
    return low == high


def region_of(batch: Batch, law: Law) -> Keep:
    """The object's own region, or a random one of the same size that a chance level is read from.

    - `moved`: the same shape, moved round the edges of the picture to where it meets the object least, and without
      what it still shares with it
    - `anywhere`: the same shape moved anywhere, object or not: what regions exchanged between pictures amount to
    - `pixels`: as many pixels, each drawn by itself
    """
    regions = batch.regions
    if regions is None:
        raise NotApplicable("relative importance needs to know where the object is, and this data set has no regions")
    if law == "object":
        return regions
    if law not in get_args(Law):
        raise BadInput(f"region must be one of {', '.join(get_args(Law))}, got {law!r}")
    # Drawn on the CPU by the image's own generator: neither device nor batch mates may move a baseline.
    drawn = [_drawn(region, law, dice) for region, dice in zip(regions.cpu(), batch.generators("region"), strict=True)]
    return torch.stack(drawn).to(regions.device) if drawn else regions


def _drawn(region: Tensor, law: Law, dice: torch.Generator) -> Tensor:
    height, width = region.shape
    if law == "pixels":
        order = torch.randperm(height * width, generator=dice).view(height, width)
        return order < region.sum()
    if law == "anywhere":
        down, right = (int(torch.randint(side, (1,), generator=dice)) for side in (height, width))
        return region.roll((down, right), (0, 1))
    meeting = overlaps(region)
    best = (meeting == meeting.min()).nonzero()
    down, right = best[int(torch.randint(len(best), (1,), generator=dice))].tolist()
    return region.roll((down, right), (0, 1)) & ~region


def overlaps(region: Tensor) -> Tensor:
    """(H, W) int64: how many pixels a region shares with itself moved by every shift round the edges."""
    spectrum = torch.fft.rfft2(region.double())
    shared = torch.fft.irfft2(spectrum * spectrum.conj(), s=region.shape)
    counts: Tensor = shared.round().long()
    return counts
