"""How orderly confidence falls as more of a picture is removed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import kendalltau

SAME_LEVEL = 0.05  # shares of segments miss a level by a little


def tau(removed: ArrayLike, confidence: ArrayLike) -> float:
    """Kendall's tau-b of the kept share with the confidence: 1 if it falls with every step, 0 if it never moves."""
    found = float(kendalltau(-np.asarray(removed, np.float64), np.asarray(confidence, np.float64)).statistic)
    return 0.0 if np.isnan(found) else found


def mean_curve_tau(removed: Iterable[ArrayLike], confidence: Iterable[ArrayLike]) -> float:
    """Tau of the mean over all images, near 1 for almost anything; NaN where they do not share their levels."""
    x, y = ([np.asarray(line, np.float64) for line in lines] for lines in (removed, confidence))
    if len({len(line) for line in x}) != 1 or float(np.ptp(x, axis=0).max()) > SAME_LEVEL:
        return float("nan")
    return tau(np.mean(x, 0), np.mean(y, 0))
