"""IoU of a heatmap with the region where the answer is, at one threshold, at many, and over all of them.

Pure functions on maps normalised to [0, 1] (`normalise`) and bool regions, (B, H, W) each; scores are
float64 on the CPU. A pixel counts as found when its heat is >= the threshold, both held in float32. IoU is
found-and-inside over found-or-inside; if both are empty it is 1. It follows what degenerate pictures
score:

- an empty region: 0 wherever anything is found, 1 above the hottest pixel
- a region that covers everything: the share of pixels found
- a constant map, normalised to 0: 0, unless the region is empty (then 1)
- NaN, infinity or heat outside [0, 1]: an error; the registered metrics give that image no score and say why
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.normalisation import normalise
from heatproof.metrics._support.pixel_ranking import (
    auroc,
    average_precision,
    best_iou,
    iou_by_area,
    relevance_mass,
    relevance_rank,
)
from heatproof.metrics._support.regions import check_pair
from heatproof.metrics._support.sorted_pixels import Flags, Values, rows, sorted_between, tail_counts
from heatproof.metrics.pointing_game import pointing_game
from heatproof.types import Keep, Maps, Scores

__all__ = [
    "auc_iou",
    "auroc",
    "average_precision",
    "best_iou",
    "exact_auc_iou",
    "iou_by_area",
    "iou_curve",
    "normalise",
    "pointing_game",
    "relevance_mass",
    "relevance_rank",
    "threshold_grid",
]

LOW, HIGH = 0.05, 0.95

Thresholds: TypeAlias = int | Sequence[float] | Tensor


def threshold_grid(thresholds: Thresholds) -> Tensor:
    """The given thresholds, or the given number of evenly spaced ones from 0.05 to 0.95: float64.

    19 of them are k/20. Other ways to write that grid (k · 0.05, arange) differ from it in the last bit of
    float64, though not in float32, where they are compared with pixels.
    """
    if isinstance(thresholds, int):
        if thresholds < 2:
            raise BadInput(f"thresholds must be at least 2, or the thresholds themselves, got {thresholds}")
        steps = torch.arange(thresholds, dtype=torch.float64)
        return (1 + 18 * steps / (thresholds - 1)) / 20
    grid = torch.as_tensor(thresholds, dtype=torch.float64).cpu()
    if grid.ndim != 1 or not len(grid) or not bool(grid.isfinite().all()):
        raise BadInput(f"thresholds must be a list of numbers, or how many, got {thresholds}")
    return grid


def iou_curve(maps: Maps, regions: Keep, thresholds: Thresholds = 19) -> Tensor:
    """IoU with the region at every threshold of `threshold_grid`: (B, K)."""
    _check(maps, regions)
    levels = threshold_grid(thresholds).numpy().astype(np.float32)
    curves = [
        _iou(*tail_counts(heat, region, levels), int(np.count_nonzero(region))) for heat, region in rows(maps, regions)
    ]
    return torch.from_numpy(np.stack(curves)) if curves else torch.zeros(0, len(levels), dtype=torch.float64)


def auc_iou(maps: Maps, regions: Keep, thresholds: Thresholds = 19, normalised: bool = True) -> Scores:
    """The area under IoU over thresholds, by trapezoids.

    `normalised` divides by the range of thresholds: a mean height of the curve, 1 for a perfect map,
    comparable with an IoU. Without, it is the published area, at most 0.9 for the default thresholds.
    """
    grid = threshold_grid(thresholds)
    if len(grid) < 2 or bool((grid.diff() <= 0).any()):
        raise BadInput(f"an area needs at least 2 thresholds, ascending, got {grid.tolist()}")
    return area(grid, iou_curve(maps, regions, thresholds), normalised)


def area(grid: Tensor, curves: Tensor, normalised: bool) -> Scores:
    """The area under curves (B, K) over a grid (K,), or with `normalised` their mean height."""
    total = torch.trapezoid(curves, grid, dim=-1)
    return total / (grid[-1] - grid[0]) if normalised else total


def exact_auc_iou(maps: Maps, regions: Keep, low: float = LOW, high: float = HIGH, normalised: bool = True) -> Scores:
    """The same area over every threshold from `low` to `high`: the limit of ever finer trapezoids."""
    _check(maps, regions)
    if not 0 <= low < high <= 1:
        raise BadInput(f"thresholds must satisfy 0 <= low < high <= 1, got low {low} and high {high}")
    width = high - low if normalised else 1.0
    areas = [_integral(heat, region, low, high) / width for heat, region in rows(maps, regions)]
    return torch.tensor(areas, dtype=torch.float64)


def _integral(heat: Values, region: Flags, low: float, high: float) -> float:
    """The curve is constant between neighbouring values of the map: a sum of rectangles, one per pixel.

    Only pixels between the ends need an order; the hotter ones are found at every threshold.
    """
    reached, beyond = heat >= _at_least(low), heat >= _at_least(high)
    size, hottest = np.count_nonzero(region), np.count_nonzero(beyond)
    pixels = sorted_between(heat, region, reached & ~beyond)
    count = len(pixels.values)
    steps = count + bool(hottest)  # up to `high`, what is found is set by the pixels beyond it
    edges = np.empty(1 + steps)
    edges[-1], edges[0] = high, low
    edges[1 : count + 1] = pixels.values
    inside = np.full(steps, np.count_nonzero(beyond & region), np.int32)
    inside[:count] += pixels.hotter
    union = np.arange(count + hottest, count + hottest - steps, -1, dtype=np.int32)
    union -= inside
    union += size
    heights = inside / union
    heights *= np.diff(edges)
    nothing = 0.0 if size or hottest else high - edges[-1]  # nothing to find and nothing found: IoU 1
    return float(heights.sum() + nothing)


def _at_least(value: float) -> np.float32:
    """The smallest float32 that is not less than a number."""
    near = np.float32(value)
    return near if float(near) >= value else np.nextafter(near, np.float32(math.inf))


def _iou(inside: NDArray[Any], outside: NDArray[Any], size: int) -> NDArray[np.float64]:
    """IoU from the pixels found inside and outside a region of `size`; 1 where there is nothing at all."""
    union = size + outside
    return np.where(union > 0, inside / np.maximum(union, 1), 1.0)


def _check(maps: Maps, regions: Keep) -> None:
    check_pair(maps, regions)
    if not maps.numel():
        return
    low, high = (float(v) for v in torch.aminmax(maps.detach()))
    if not (low >= 0 and high <= 1):  # also catches NaN
        raise BadInput(
            f"maps must lie in [0, 1], got [{low:g}, {high:g}]: normalise(maps, 'abs_p99') or by another rule"
        )
