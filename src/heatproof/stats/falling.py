"""How steadily confidence falls as more of a picture is removed: Kendall's tau."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import kendalltau

from heatproof.errors import BadInput

SAME_LEVEL = 0.05  # shares of segments miss a level by a little


def tau(removed: ArrayLike, confidence: ArrayLike) -> float:
    """Kendall's tau-b of the kept share with the confidence: 1 if it falls with every step, 0 if it never moves.

    NaN where a point of the curve is missing.
    """
    x, y = np.asarray(removed, np.float64), np.asarray(confidence, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise BadInput(f"a curve needs as many confidences as removed shares, got shapes {y.shape} and {x.shape}.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("nan")
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(kendalltau(-x, y).statistic)


def mean_curve_tau(removed: Iterable[ArrayLike], confidence: Iterable[ArrayLike]) -> float:
    """Tau of the mean over all images, near 1 for almost anything; NaN where they do not share their levels."""
    x, y = ([np.asarray(line, np.float64) for line in lines] for lines in (removed, confidence))
    if len({len(line) for line in x + y}) != 1 or not len(x[0]) or not float(np.ptp(x, axis=0).max()) <= SAME_LEVEL:
        return float("nan")
    return tau(np.mean(x, 0), np.mean(y, 0))
