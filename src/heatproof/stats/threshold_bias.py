"""Threshold bias: IoU at single thresholds against the threshold-free score."""

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
from heatproof.stats.significance import holm, signed_ranks, without_rounding


@dataclass(frozen=True)
class ThresholdPair:
    """Two methods whose order at some thresholds is the reverse of the threshold-free one."""

    first: str  # ahead without a threshold
    second: str
    thresholds: tuple[float, ...]  # where the second is ahead


@dataclass(frozen=True, eq=False)
class ThresholdBias:
    """What choosing a threshold does to each method and to the ranking.

    `methods`: per method the threshold-free mean, IoU at the low, middle and high threshold, their relative
    differences in per cent, the swing between low and high in percentage points, and the fold IoU(low) / IoU(high).
    `thresholds`: per threshold Kendall's tau-b with the threshold-free ranking, and the winner: the threshold-free
    one wherever it is among the best, "" where others tie.
    """

    methods: pd.DataFrame
    thresholds: pd.DataFrame
    pairs: tuple[ThresholdPair, ...]
    winner: str  # without a threshold
    n: int | None  # images every method has; None if only means were given
    dropped_images: int
    low: float
    middle: float
    high: float
    span: float


@dataclass(frozen=True, eq=False)
class ThresholdTests:
    """Whether the threshold-free height of a method differs from its own IoU at a threshold.

    One row per method and threshold: `n` images, `n_zero` of them without a difference, the signed-rank p, and
    p_holm over all rows; differences are height - IoU.
    """

    frame: pd.DataFrame
    alpha: float


def relative_difference(free: ArrayLike, at_threshold: ArrayLike) -> FloatArray:
    """100 (free - IoU) / IoU in per cent; NaN where the IoU is 0, or so near that the ratio fits no double."""
    score, iou = _alike(free, at_threshold)
    out = np.full(iou.shape, np.nan)
    with np.errstate(over="ignore"):
        np.divide(100 * (score - iou), iou, out=out, where=iou != 0)
    return np.where(np.isinf(out), np.nan, out)


def fold(low: ArrayLike, high: ArrayLike) -> FloatArray:
    """IoU(low) / IoU(high): 1 if the threshold does not matter; infinite if the latter is 0, NaN if both."""
    below, above = _alike(low, high)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(below / above, dtype=np.float64)


def _alike(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as floats of one shape."""
    one, other = scored(first), scored(second)
    try:
        one, other = np.broadcast_arrays(one, other)
    except ValueError:
        raise BadInput(f"scores must be of one shape, got {one.shape} and {other.shape}.") from None
    return one, other


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
        bias.middle,
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
    _some_of_each(methods, thresholds)
    curves, scores = scored(iou), scored(free)
    if curves.shape != (len(methods), len(thresholds)) or scores.shape != (len(methods),):
        raise BadInput(
            f"{len(methods)} methods and {len(thresholds)} thresholds need IoU of shape "
            f"{(len(methods), len(thresholds))}, one score per method, got {curves.shape} and {scores.shape}."
        )
    if not span > 0:
        raise BadInput(f"span must be positive, got {span}.")
    height = scores / span
    middle = float(min(thresholds, key=lambda t: abs(float(t) - 0.5)))
    at_low, at_middle, at_high = (curves[:, _column(thresholds, t)] for t in (low, middle, high))
    below, above = relative_difference(height, at_low), relative_difference(height, at_high)
    per_method = pd.DataFrame(
        {
            "method": list(methods),
            "free": scores,
            "iou_low": at_low,
            "iou_middle": at_middle,
            "iou_high": at_high,
            "difference_low": below,
            "difference_middle": relative_difference(height, at_middle),
            "difference_high": above,
            "swing": above - below,
            "fold": fold(at_low, at_high),
        }
    )
    winner = methods[int(np.argmax(scores))]
    per_threshold = pd.DataFrame(
        {
            "threshold": [float(t) for t in thresholds],
            "tau": [kendall_tau(scores, column) for column in curves.T],
            "winner": [_leader(column, methods, winner) for column in curves.T],
        }
    )
    pairs = _pairs(curves, scores, methods, thresholds)
    return ThresholdBias(per_method, per_threshold, pairs, winner, None, 0, low, middle, high, span)


def threshold_tests(
    iou: ArrayLike,
    free: ArrayLike,
    methods: Sequence[str],
    thresholds: Sequence[float],
    *,
    span: float = 1.0,
    alpha: float = 0.05,
) -> ThresholdTests:
    """Each method's threshold-free height against its IoU at every threshold, by signed ranks over its images.

    `span` divides the threshold-free score: an area set against heights would differ from all of them by its width.
    Holm's adjustment covers methods × thresholds, as published; an image that a method has no score for is left out
    for that method.
    """
    _some_of_each(methods, thresholds)
    curves, scores = scored(iou), scored(free)
    if curves.ndim != 3 or curves.shape != (*scores.shape, len(thresholds)) or scores.shape[1] != len(methods):
        raise BadInput(
            f"{len(methods)} methods and {len(thresholds)} thresholds need IoU (images, methods, thresholds) and "
            f"scores (images, methods), got shapes {curves.shape} and {scores.shape}."
        )
    heights = np.broadcast_to((scores / span)[:, :, None], curves.shape)
    columns = [
        without_rounding(heights[:, method, level], curves[:, method, level])
        for method in range(len(methods))
        for level in range(len(thresholds))
    ]
    tests = signed_ranks(np.column_stack(columns))
    adjusted = holm([test.p for test in tests])
    places = [(method, float(level)) for method in methods for level in thresholds]
    rows = [
        (*place, test.n, test.n_zero, test.p, p_holm, test.median_difference, test.rank_biserial, bool(p_holm < alpha))
        for place, test, p_holm in zip(places, tests, adjusted.tolist(), strict=True)
    ]
    names = ["method", "threshold", "n", "n_zero", "p", "p_holm", "median_difference", "rank_biserial", "significant"]
    return ThresholdTests(pd.DataFrame(rows, columns=names), alpha)


def _some_of_each(methods: Sequence[str], thresholds: Sequence[float]) -> None:
    if not len(methods) or not len(thresholds):
        raise BadInput(
            f"thresholds are compared for at least one method and threshold, got {len(methods)} and {len(thresholds)}."
        )


def _leader(heights: FloatArray, methods: Sequence[str], usual: str) -> str:
    """The best method at a threshold; in a tie the threshold-free winner if it is among them, else ""."""
    level = np.isclose(heights, heights.max(), rtol=1e-9, atol=0).tolist()
    best = [method for method, is_best in zip(methods, level, strict=True) if is_best]
    return usual if usual in best else best[0] if len(best) == 1 else ""


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
    if abs(float(thresholds[nearest]) - wanted) > 1e-6:  # thresholds are float32, which has no exact 0.3
        raise BadInput(f"{wanted} is not among the thresholds {', '.join(f'{t:g}' for t in thresholds)}.")
    return nearest
