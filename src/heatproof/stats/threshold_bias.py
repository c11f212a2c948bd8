"""How much one threshold decides: IoU at single thresholds against the threshold-free score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, scored
from heatproof.stats.ranks import kendall_tau


@dataclass(frozen=True)
class ThresholdPair:
    """Two methods whose order at some thresholds is the reverse of the threshold-free one."""

    first: str  # ahead without a threshold
    second: str
    thresholds: tuple[float, ...]  # where the second is ahead


@dataclass(frozen=True, eq=False)
class ThresholdBias:
    """What choosing a threshold does to each method and to the ranking.

    `methods`: per method the threshold-free mean, IoU at the low and high threshold, their relative
    differences in per cent, the swing between those in percentage points, and the fold IoU(low) / IoU(high).
    `thresholds`: per threshold Kendall's tau-b with the threshold-free ranking, and the winner.
    """

    methods: pd.DataFrame
    thresholds: pd.DataFrame
    pairs: tuple[ThresholdPair, ...]
    winner: str  # without a threshold
    n: int | None  # images every method has; None if only means were given
    dropped_images: int
    low: float
    high: float
    span: float


def relative_difference(free: ArrayLike, at_threshold: ArrayLike) -> FloatArray:
    """100 (free - IoU) / IoU in per cent; NaN where the IoU is 0 and there is nothing to relate to."""
    score, iou = np.broadcast_arrays(scored(free), scored(at_threshold))
    out = np.full(iou.shape, np.nan)
    np.divide(100 * (score - iou), iou, out=out, where=iou != 0)
    return out


def fold(low: ArrayLike, high: ArrayLike) -> FloatArray:
    """IoU(low) / IoU(high): 1 if the threshold does not matter; infinite if the latter is 0, NaN if both."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(scored(low) / scored(high), dtype=np.float64)


def threshold_bias(
    iou: ArrayLike,
    free: ArrayLike,
    methods: Sequence[str],
    thresholds: Sequence[float],
    *,
    low: float = 0.3,
    high: float = 0.7,
    span: float = 1.0,
) -> ThresholdBias:
    """From IoU per (image, method, threshold) and threshold-free scores per (image, method); higher wins.

    Images with a missing score of any method are left out and counted, so that all means share their images.
    """
    curves, scores = scored(iou), scored(free)
    if curves.ndim != 3 or scores.shape != curves.shape[:2]:
        raise BadInput(
            f"IoU must be (images, methods, thresholds) and the threshold-free scores (images, methods), "
            f"got shapes {curves.shape} and {scores.shape}."
        )
    keep = ~(np.isnan(curves).any(axis=(1, 2)) | np.isnan(scores).any(axis=1))
    if not keep.any():
        raise BadInput("no image has all scores of all methods: leave out the methods that miss most.")
    bias = bias_of_means(
        curves[keep].mean(axis=0),
        scores[keep].mean(axis=0),
        methods,
        thresholds,
        low=low,
        high=high,
        span=span,
    )
    return ThresholdBias(
        bias.methods,
        bias.thresholds,
        bias.pairs,
        bias.winner,
        int(keep.sum()),
        int((~keep).sum()),
        low,
        high,
        span,
    )


def bias_of_means(
    iou: ArrayLike,
    free: ArrayLike,
    methods: Sequence[str],
    thresholds: Sequence[float],
    *,
    low: float = 0.3,
    high: float = 0.7,
    span: float = 1.0,
) -> ThresholdBias:
    """The same from means: (methods, thresholds) IoU and (methods,) threshold-free scores.

    `span` divides the threshold-free score before it is set against IoU heights: 1 for a mean height, and
    for the published comparison of an area with heights; 0.9 turns an area over [0.05, 0.95] into a height.
    """
    curves, scores = scored(iou), scored(free)
    if curves.shape != (len(methods), len(thresholds)) or scores.shape != (len(methods),):
        raise BadInput(
            f"{len(methods)} methods and {len(thresholds)} thresholds need IoU of shape "
            f"{(len(methods), len(thresholds))}, one score per method, got {curves.shape} and {scores.shape}."
        )
    if not span > 0:
        raise BadInput(f"span must be positive, got {span}.")
    height = scores / span
    at_low, at_high = curves[:, _column(thresholds, low)], curves[:, _column(thresholds, high)]
    below, above = relative_difference(height, at_low), relative_difference(height, at_high)
    per_method = pd.DataFrame(
        {
            "method": list(methods),
            "free": scores,
            "iou_low": at_low,
            "iou_high": at_high,
            "difference_low": below,
            "difference_high": above,
            "swing": above - below,
            "fold": fold(at_low, at_high),
        }
    )
    per_threshold = pd.DataFrame(
        {
            "threshold": [float(t) for t in thresholds],
            "tau": [kendall_tau(scores, column) for column in curves.T],
            "winner": [methods[int(np.argmax(column))] for column in curves.T],
        }
    )
    winner = methods[int(np.argmax(scores))]
    pairs = _pairs(curves, scores, methods, thresholds)
    return ThresholdBias(per_method, per_threshold, pairs, winner, None, 0, low, high, span)


def _pairs(
    curves: FloatArray, scores: FloatArray, methods: Sequence[str], thresholds: Sequence[float]
) -> tuple[ThresholdPair, ...]:
    order = np.argsort(-scores, kind="stable")
    found = []
    for a, b in combinations(order, 2):
        if scores[a] == scores[b]:
            continue  # a tie has no order to reverse
        swapped = tuple(float(t) for t, x, y in zip(thresholds, curves[a], curves[b], strict=True) if y > x)
        if swapped:
            found.append(ThresholdPair(methods[a], methods[b], swapped))
    return tuple(found)


def _column(thresholds: Sequence[float], wanted: float) -> int:
    nearest = int(np.argmin(np.abs(np.asarray(thresholds, dtype=np.float64) - wanted)))
    if abs(float(thresholds[nearest]) - wanted) > 1e-6:  # thresholds are held in float32, where 0.3 is not 0.3
        raise BadInput(f"{wanted} is not among the thresholds {', '.join(f'{t:g}' for t in thresholds)}.")
    return nearest
