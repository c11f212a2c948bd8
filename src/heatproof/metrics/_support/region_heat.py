"""The heat of a map inside a region: the number that relative importance compares.

Normalisation is part of the metric. The paper's drops evidence against the class and scales each map by its own 99th
percentile, so what happens elsewhere in the picture moves the number; ranks and shares of mass have no scale to move.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from heatproof.data._support.other_region import OTHER_REGION
from heatproof.errors import BadInput, NotApplicable
from heatproof.metrics._support.regions import check_pair
from heatproof.types import Batch, Keep, Maps, Scores

Rule: TypeAlias = Literal["paper", "rank", "mass"]
Law: TypeAlias = Literal["object", "moved", "permuted", "pixels"]

Measured: TypeAlias = Literal["other", "chance"]

FLAT = "the map is flat"


def measured(law: Law) -> Measured:
    """A random region's score is a chance level and does not rank methods."""
    return "other" if law == "object" else "chance"


def positive_p99(maps: Maps) -> Maps:
    """The paper's heat in [0, 1]: positive part, from its minimum to its 99th percentile; a flat map is 0.

    Where the 99th percentile is the minimum (heat on under 1 % of the pixels) the maximum takes its place.
    """
    positive = maps.flatten(1).clamp(min=0)
    high = _p99(positive)
    positive = positive.double()
    low = positive.amin(1, keepdim=True)
    high = torch.where(high > low, high, positive.amax(1, keepdim=True))
    span = high - low
    heat = ((positive - low) / torch.where(span > 0, span, 1.0)).clamp(0, 1)
    return torch.where(span > 0, heat, 0.0).view(maps.shape)


def _p99(values: Tensor) -> Tensor:
    """numpy.percentile(values, 99) by row; torch.quantile refuses large pictures and sorts all of them."""
    count = values.shape[1]
    place = 0.99 * (count - 1)
    below = int(place)
    highest = values.topk(count - below, dim=1).values.double()  # descending: the last one lies below
    low, high = highest[:, [-1]], highest[:, [max(-2, -highest.shape[1])]]
    return low + (place - below) * (high - low)


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
    """Each pixel's rank in [0, 1], not rescaled: the mean is ½ whatever the ties, and a flat map is ½ everywhere."""
    values = maps.detach().double().cpu().flatten(1).numpy()
    if not np.isfinite(values).all():
        raise BadInput("maps must be finite to be ranked, got NaN or infinity")
    ranks = np.asarray(rankdata(values, axis=1))
    count = values.shape[1]
    heat = (ranks - 1) / (count - 1) if count > 1 else np.full_like(ranks, 0.5)
    return torch.from_numpy(heat).view(maps.shape).to(maps.device)


def flat(maps: Maps, rule: Rule) -> Tensor:
    """(B,) bool: maps that are flat under the rule."""
    values = maps.flatten(1) if rule == "rank" else maps.flatten(1).clamp(min=0)
    low, high = values.aminmax(dim=1)
    return low == high


def region_of(batch: Batch, law: Law) -> Keep:
    """The object's region, or a random one for a chance level.

    - `moved`: the same shape where it overlaps the object least (usually not at all), minus the remaining overlap;
      in one piece if there is such a place, else wrapped around the edges of the picture
    - `permuted`: the region of another picture, each used once; it may overlap the object. The data set declares
      which (`Batch.labels["other_region"]`). If it does not, it is one of the same batch, and another shard size
      or limit gives another number: the only law that depends on more than the picture
    - `pixels`: as many pixels, each drawn independently
    """
    regions = batch.regions
    if regions is None:
        raise NotApplicable("relative importance needs to know where the object is, and this data set has no regions")
    if law == "object":
        return regions
    if law not in get_args(Law):
        raise BadInput(f"region must be one of {', '.join(get_args(Law))}, got {law!r}")
    if law == "permuted":
        lent = batch.labels.get(OTHER_REGION)
        return regions[_givers(batch)] if lent is None else lent
    # Drawn on the CPU by the image's own generator: a baseline must depend on neither device nor batch.
    draw = _moved if law == "moved" else _pixels
    drawn = [draw(region, dice) for region, dice in zip(regions.cpu(), batch.generators("region"), strict=True)]
    return torch.stack(drawn).to(regions.device) if drawn else regions


def _givers(batch: Batch) -> Tensor:
    """The batch row whose region each picture gets: never its own, in a random order seeded by the ids."""
    assert batch.regions is not None
    shown = batch.regions.flatten(1).any(1).tolist()
    seeds = batch.seeds("region")
    order = sorted((row for row in range(len(batch)) if shown[row]), key=lambda row: (seeds[row], row))
    if len(order) == 1:
        raise NotApplicable("a permuted region is another picture's, and no other picture here has one")
    givers = torch.arange(len(batch))
    givers[order] = torch.tensor(order[1:] + order[:1], dtype=torch.int64)
    return givers.to(batch.regions.device)


def _pixels(region: Tensor, dice: torch.Generator) -> Tensor:
    order = torch.randperm(region.numel(), generator=dice).view(region.shape)
    return order < region.sum()


def _moved(region: Tensor, dice: torch.Generator) -> Tensor:
    meeting = overlaps(region)
    best = meeting == meeting.min()
    whole = best & _in_one_piece(region)
    places = (whole if bool(whole.any()) else best).nonzero()
    down, right = places[int(torch.randint(len(places), (1,), generator=dice))].tolist()
    return region.roll((down, right), (0, 1)) & ~region


def _in_one_piece(region: Tensor) -> Tensor:
    """(H, W) bool: the shifts round the edges that do not tear the region apart."""
    fits = []
    for side, other in ((0, 1), (1, 0)):
        length = region.shape[side]
        taken = region.any(other).nonzero()
        first, last = (int(taken.min()), int(taken.max())) if len(taken) else (0, 0)
        shift = torch.arange(length)
        fits.append((last + shift < length) | (first + shift >= length))
    return fits[0][:, None] & fits[1]


def overlaps(region: Tensor) -> Tensor:
    """(H, W) int64: how many pixels a region shares with itself moved by every shift round the edges."""
    spectrum = torch.fft.rfft2(region.double())
    shared = torch.fft.irfft2(spectrum * spectrum.conj(), s=region.shape)
    counts: Tensor = shared.round().long()
    return counts
