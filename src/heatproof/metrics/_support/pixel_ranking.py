"""Scores of the pixel order against the region: hottest first, whatever the units of the map.

Maps need no normalising here: every monotone rescaling gives the same score (relevance mass excepted, which
adds up heat). Tied pixels share their scores: no order among them is invented. Scores are float64 on the
CPU; NaN where the question has no answer (an empty region, or for AUROC one without an outside; a map
without heat; NaN).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.regions import check_pair, finite_rows
from heatproof.metrics._support.sorted_pixels import Flags, SortedPixels, Values, rows, sorted_pixels
from heatproof.types import Keep, Maps, Scores

Sign: TypeAlias = Literal["signed", "positive", "absolute"]


def signed(maps: Maps, sign: Sign) -> Maps:
    """The map as it is, its evidence for the target only, or its magnitude."""
    match sign:
        case "signed":
            return maps
        case "positive":
            return maps.clamp(min=0)
        case "absolute":
            return maps.abs()
    raise BadInput(f"sign must be one of {', '.join(get_args(Sign))}, got {sign!r}")


def best_iou(maps: Maps, regions: Keep) -> Scores:
    """The IoU at the threshold that suits the map best, chosen with knowledge of the region: an upper bound."""
    return _each(maps, regions, _best_iou)


def average_precision(maps: Maps, regions: Keep) -> Scores:
    """The precision at each pixel of the region, hottest first, averaged over these pixels."""
    return _each(maps, regions, _average_precision)


def auroc(maps: Maps, regions: Keep) -> Scores:
    """The chance that a pixel inside the region is hotter than one outside; ties count half."""
    return _each(maps, regions, _auroc)


def relevance_rank(maps: Maps, regions: Keep) -> Scores:
    """The share of the hottest pixels, as many as the region has, that lie inside it."""
    return _each(maps, regions, _relevance_rank)


def iou_by_area(maps: Maps, regions: Keep, areas: Tensor) -> Tensor:
    """IoU when the hottest share `areas` (K,) of the pixels is taken for the region: (B, K)."""
    check_pair(maps, regions)
    shares = areas.double().cpu().numpy()
    curves = np.full((len(maps), len(shares)), np.nan)
    for out, (values, region) in zip(curves, rows(maps, regions), strict=True):
        if np.isfinite(values).all() and region.any():
            pixels = sorted_pixels(values, region)
            taken = shares * len(values)
            inside = inside_hottest(pixels, taken)
            out[:] = inside / (pixels.size + taken - inside)
    return torch.from_numpy(curves)


def relevance_mass(maps: Maps, regions: Keep) -> Scores:
    """The share of all heat that lies inside the region; the maps must not be negative."""
    check_pair(maps, regions)
    heat, inside = maps.detach().cpu().double().flatten(1), regions.cpu().flatten(1)
    if bool((heat < 0).any()):
        raise BadInput("relevance mass needs maps without negative values: take their positive part or magnitude")
    mass = (heat * inside).sum(1) / heat.sum(1)  # 0 / 0 is NaN
    mass[~inside.any(1) | ~finite_rows(heat)] = torch.nan
    return mass


def _each(maps: Maps, regions: Keep, score: Callable[[SortedPixels], float]) -> Scores:
    check_pair(maps, regions)

    def scored(values: Values, region: Flags) -> float:
        return score(sorted_pixels(values, region)) if np.isfinite(values).all() and region.any() else np.nan

    return torch.tensor([scored(*row) for row in rows(maps, regions)], dtype=torch.float64)


def _best_iou(pixels: SortedPixels) -> float:
    inside, outside = pixels.distinct()
    return float((inside / (pixels.size + outside)).max())


def _average_precision(pixels: SortedPixels) -> float:
    inside, outside = pixels.distinct()
    found = np.diff(inside, prepend=0)
    return float((found * (inside / (inside + outside))).sum() / pixels.size)


def _auroc(pixels: SortedPixels) -> float:
    inside, outside = (counts.astype(np.float64) for counts in pixels.distinct())
    if not outside[-1]:
        return float("nan")
    halfway = np.concatenate(([inside[0] / 2], (inside[1:] + inside[:-1]) / 2))
    return float((np.diff(outside, prepend=0) * halfway).sum() / (inside[-1] * outside[-1]))


def _relevance_rank(pixels: SortedPixels) -> float:
    return float(inside_hottest(pixels, np.array([pixels.size], dtype=np.float64))[0] / pixels.size)


def inside_hottest(pixels: SortedPixels, taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many of the hottest `taken` pixels lie inside; within a tie in proportion to what the tie holds."""
    inside, outside = pixels.distinct()
    found, caught = np.concatenate(([0], inside + outside)), np.concatenate(([0], inside))
    return np.asarray(np.interp(taken, found, caught), dtype=np.float64)
