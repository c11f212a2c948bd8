"""The mean of curves with its band, on a common grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatproof.stats.bootstrap import resampled_means

POINTS = 31  # per curve: more cannot be seen on a page

Floats = NDArray[np.float64]


def mean_curve(xs: Sequence[Any], ys: Sequence[Any]) -> tuple[Floats, Floats, Floats, Floats] | None:
    """x, mean, low, high over images; curves on different x are interpolated on one grid over their range."""
    pairs = [(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)) for x, y in zip(xs, ys, strict=True)]
    pairs = [(x, y) for x, y in pairs if x.size > 1 and x.shape == y.shape and np.isfinite(x).all()]
    if not pairs:
        return None
    first = pairs[0][0]
    if len(first) <= POINTS and all(np.array_equal(x, first) for x, _ in pairs):
        grid, table = first, np.stack([y for _, y in pairs])
    else:
        low, high = max(float(x.min()) for x, _ in pairs), min(float(x.max()) for x, _ in pairs)
        if low >= high:
            return None
        grid = np.linspace(low, high, POINTS)
        table = np.stack([np.interp(grid, x[np.argsort(x)], y[np.argsort(x)]) for x, y in pairs])
    table = table[np.isfinite(table).all(axis=1)]
    if not len(table):
        return None
    mean = table.mean(axis=0)
    if len(table) < 2:
        return grid, mean, mean, mean
    lower, upper = np.quantile(resampled_means(table, resamples=400), [0.025, 0.975], axis=0)
    return grid, mean, lower, upper
