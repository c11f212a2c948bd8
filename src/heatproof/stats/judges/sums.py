"""Means and correlations that pass over what is missing, without warnings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from heatproof.stats.bootstrap import FloatArray, Interval, interval

RESAMPLES = 500


def mean_of(values: ArrayLike, *, share: bool = False) -> Interval:
    """The mean over pictures and its bootstrap interval, expanded for few pictures."""
    return interval(values, resamples=RESAMPLES, kind="expanded", share=share)


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Rank correlation over what both have; 0 where one does not vary, NaN for fewer than three."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    known = ~(np.isnan(one) | np.isnan(other))
    if known.sum() < 3:
        return float("nan")
    one, other = one[known], other[known]
    return float(stats.spearmanr(one, other).statistic) if np.ptp(one) and np.ptp(other) else 0.0


def moments(values: FloatArray) -> tuple[float, float, int]:
    """Mean, its standard error, and how many there are."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return float("nan"), float("nan"), len(known)
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(len(known))), len(known)


def nanmean(values: FloatArray, axis: int | None = None) -> FloatArray:
    """The mean of what is there; NaN where nothing is."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis) / known.sum(axis), dtype=np.float64)


def ratio(above: float, below: float) -> float:
    """A quotient; NaN over 0."""
    return above / below if below else float("nan")
