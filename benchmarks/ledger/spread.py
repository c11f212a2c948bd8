"""Intervals of statistics that are no function of means: resampled pictures, and differences of independent samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from heatproof.stats.bootstrap import expanded_tails
from ledger.number import Number

RESAMPLES = 400
Floats = NDArray[np.float64]
FEWEST = 5


def resampled(
    what: str, n: int, statistic: Callable[[NDArray[np.int64]], float], *, clusters: Sequence[NDArray[np.int64]] = ()
) -> Number:
    """A statistic of the chosen rows, with its percentiles over resampled rows, or whole groups."""
    everything = np.arange(n)
    value, low, high = statistic(everything), math.nan, math.nan
    units = min([n, *(int(index.max()) + 1 for index in clusters)])
    if units >= FEWEST:
        dice = np.random.default_rng(0)
        values = [statistic(_drawn(dice, n, clusters)) for _ in range(RESAMPLES)]
        low, high = (float(x) for x in np.nanquantile(values, expanded_tails(units, 0.95)))
    return Number(what, value, low, high, n)


def _drawn(dice: np.random.Generator, n: int, clusters: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Rows of one resample; with groups a row occurs as often as draws of its groups meet in it."""
    while clusters:
        times = np.ones(n, dtype=np.int64)
        for index in clusters:
            count = int(index.max()) + 1
            times *= np.bincount(dice.integers(0, count, count), minlength=count)[index]
        if times.sum() >= FEWEST:
            return np.repeat(np.arange(n), times)
    return dice.integers(0, n, n)


def apart(what: str, first: Number, second: Number) -> Number:
    """First minus second, of two independent samples whose intervals are known."""
    value = first.value - second.value
    low = value - math.hypot(first.value - first.low, second.high - second.value)
    high = value + math.hypot(first.high - first.value, second.value - second.low)
    return Number(what, value, low, high, min(first.n, second.n), first.level)
