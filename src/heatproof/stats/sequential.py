"""Anytime-valid confidence sequences: intervals of a mean that hold at every look at once, however often one looks.

Runs do not stop by them: looks with shares of alpha (`heatproof.stats.looks`) need fewer pictures for the same pairs.
They are for data that is looked at after every single picture.

Paper: Wang & Ramdas 2025, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance";
Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting"
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, scored


def mixture_scale(units: float, alpha: float) -> float:
    """φ of the t-mixture whose interval is narrowest at about this many units."""
    log = -2 * np.log(alpha)
    return float(units / (log + np.log(log + 1)))


def t_mixture(values: ArrayLike, alpha: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """Centre and half-width after each unit of (units, columns): a Gaussian mixture of t statistics.

    Exact for independent Gaussian units, approximate for means of shards. Infinite while there are too few units.
    """
    x = _units(values)
    t = np.arange(1, len(x) + 1)[:, None].astype(np.float64)
    mean = np.cumsum(x, axis=0) / t
    centred = x - x[:1]
    squares = np.cumsum(centred**2, axis=0) - t * (mean - x[:1]) ** 2
    spread = np.sqrt(np.maximum(squares, 0.0) / np.maximum(t - 1, 1))
    freedom = t - 1
    psi = scale / (scale + t)
    c = (alpha**2 * psi) ** (1 / (freedom + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        half = spread / np.sqrt(t) * np.sqrt(freedom * (1 - c) / (c - psi))
    return mean, np.where((c > psi) & (freedom > 0), half, np.inf)


def empirical_bernstein(values: ArrayLike, alpha: float, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Centre and half-width after each unit of (units, columns) of numbers in [low, high]; valid for any finite count.

    For hits and misses the paired difference lies in [−1, 1].
    """
    x = _units(values)
    if not high > low or (x < low - 1e-12).any() or (x > high + 1e-12).any():
        raise BadInput(f"values must lie in [{low:g}, {high:g}], got {x.min():g} to {x.max():g}.")
    x = (x - low) / (high - low)
    t = np.arange(1, len(x) + 1)[:, None].astype(np.float64)
    mean = (0.5 + np.cumsum(x, axis=0)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, axis=0)) / (t + 1)
    before = np.vstack([np.full((1, x.shape[1]), 0.25), variance[:-1]])
    guess = np.vstack([np.full((1, x.shape[1]), 0.5), mean[:-1]])
    stake = np.minimum(np.sqrt(2 * np.log(2 / alpha) / (before * t * np.log(1 + t))), 0.5)
    total = np.cumsum(stake, axis=0)
    centre = np.cumsum(stake * x, axis=0) / total
    cost = np.cumsum((x - guess) ** 2 * (-np.log1p(-stake) - stake), axis=0)
    return low + (high - low) * centre, (high - low) * (np.log(2 / alpha) + cost) / total


def _units(values: ArrayLike) -> FloatArray:
    x = scored(values)
    if x.ndim != 2 or not len(x) or np.isnan(x).any():
        raise BadInput(f"units must be a table (units × columns) without holes, got shape {x.shape}.")
    return x
