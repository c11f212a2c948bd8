"""Anytime-valid confidence sequences: intervals of a mean that hold at every look at once, however often one looks.

Paper: Wang & Ramdas 2025, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance";
Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, scored

Outcome = Literal["better", "worse", "equivalent", "open"]
SHARD = 20  # pictures per unit, at least: means of fewer are too skewed for the t-mixture


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


def outcomes(centre: FloatArray, half: FloatArray, margin: float = 0.0) -> NDArray[np.str_]:
    """What one look decides of each column: better or worse than 0, equivalent within the margin, or open."""
    low, high = centre - half, centre + half
    found = np.full(centre.shape, "open", dtype="<U10")
    found[(low > -margin) & (high < margin)] = "equivalent"
    found[low > 0], found[high < 0] = "better", "worse"
    return found


@dataclass
class Race:
    """All pairs of methods followed shard by shard, until each is decided.

    `cards` counts the metrics, models and data sets whose pairs are followed together: alpha is shared among all pairs
    there were at the start, and the share of a decided pair is not passed on.
    """

    methods: Sequence[str]
    alpha: float = 0.05
    margin: float = 0.0
    cards: int = 1
    expected: float = 30  # units at which the sequence is tuned
    hits: bool = False  # scores of 0 and 1: one unit is one picture
    higher_is_better: bool = True
    decided: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    units: list[FloatArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.methods) < 2:
            raise BadInput(f"a race needs at least two methods, got {len(self.methods)}.")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [(a, b) for at, a in enumerate(self.methods) for b in self.methods[at + 1 :]]

    @property
    def level(self) -> float:
        """Alpha of one pair."""
        return self.alpha / (len(self.pairs) * self.cards)

    def add(self, scores: ArrayLike) -> None:
        """One shard of (pictures × methods) scores; methods that have left the race may be NaN."""
        table = scored(scores)
        if table.ndim != 2 or table.shape[1] != len(self.methods):
            raise BadInput(f"a shard must be (pictures × {len(self.methods)} methods), got shape {table.shape}.")
        if not self.hits and len(table) < SHARD:
            raise BadInput(f"a shard needs at least {SHARD} pictures, got {len(table)}: its mean is one unit.")
        if self.hits:
            self.units.extend(table)
        else:
            known = (~np.isnan(table)).all(axis=0)
            self.units.append(np.where(known, np.where(np.isnan(table), 0.0, table).mean(axis=0), np.nan))
        self._look()

    def _look(self) -> None:
        table = np.array(self.units)
        at = {method: column for column, method in enumerate(self.methods)}
        sign = 1.0 if self.higher_is_better else -1.0
        for a, b in self.pairs:
            if (a, b) in self.decided:
                continue
            differences = sign * (table[:, at[a]] - table[:, at[b]])
            if np.isnan(differences).any():
                continue
            column = differences[:, None]
            if self.hits:
                centre, half = empirical_bernstein(column, self.level, -1, 1)
            else:
                centre, half = t_mixture(column, self.level, mixture_scale(self.expected, self.level))
            found: Outcome = outcomes(centre[-1:], half[-1:], self.margin)[0, 0].item()
            if found != "open":
                self.decided[a, b] = found

    @property
    def open(self) -> list[tuple[str, str]]:
        return [pair for pair in self.pairs if pair not in self.decided]

    @property
    def running(self) -> list[str]:
        """The methods that can still be the best: none has been shown to beat them."""
        beaten = {b if found == "better" else a for (a, b), found in self.decided.items() if found != "equivalent"}
        return [method for method in self.methods if method not in beaten]

    @property
    def first_place_decided(self) -> bool:
        """Whether one method runs alone, or those that run are equivalent to each other."""
        left = set(self.running)
        return all(pair in self.decided for pair in self.pairs if set(pair) <= left)


def alpha_spent(alpha: float, shares: Sequence[float]) -> list[float]:
    """How much of alpha each planned look may spend, from the share of the data it has: for recurring groups.

    Where the same groups come back in every shard, no confidence sequence above is valid for groups not seen. Test with
    cluster-robust means at these levels instead.
    """
    whole = [0.0, *shares]
    if any(b <= a for a, b in pairwise(whole)) or whole[-1] > 1:
        raise BadInput(f"shares of the planned data must rise from above 0 to at most 1, got {list(shares)}.")
    return [alpha * (b**2 - a**2) for a, b in pairwise(whole)]


def _units(values: ArrayLike) -> FloatArray:
    x = scored(values)
    if x.ndim != 2 or not len(x) or np.isnan(x).any():
        raise BadInput(f"units must be a table (units × columns) without holes, got shape {x.shape}.")
    return x
