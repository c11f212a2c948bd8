"""Power analysis: how many pictures a comparison needs, from a pilot, and what a number of pictures can show."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.ranks import check_table

MOST = 10_000_000


@dataclass(frozen=True)
class Plan:
    """For one pair: what the pilot shows, and how many pictures it takes to separate the two."""

    first: str
    second: str
    mean_difference: float
    sd: float
    pictures: int | None  # None if no number suffices, since the pilot shows no difference
    detectable: float  # the smallest difference that `planned` pictures are likely to show


def needed_pictures(difference: float, sd: float, *, alpha: float = 0.05, tests: int = 1, power: float = 0.8) -> int:
    """Pictures for a paired t test at alpha/tests to find such a difference with this probability."""
    if not sd >= 0 or not 0 < alpha < 1 or not 0 < power < 1 or tests < 1:
        raise BadInput(f"needed_pictures got sd {sd}, alpha {alpha}, power {power} and {tests} tests.")
    if difference == 0 or not np.isfinite(difference):
        raise BadInput("no number of pictures shows a difference of 0: name one worth finding.")
    low, high = 6, 12
    if _power(low, abs(difference), sd, alpha / tests) >= power:
        return low
    while _power(high, abs(difference), sd, alpha / tests) < power:
        low, high = high, 2 * high
        if high > MOST:
            return MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, abs(difference), sd, alpha / tests) >= power else (middle, high)
    return high


def detectable_difference(n: int, sd: float, *, alpha: float = 0.05, tests: int = 1, power: float = 0.8) -> float:
    """The smallest mean difference that n pictures show with this probability."""
    if n < 2:
        raise BadInput(f"a detectable difference needs at least two pictures, got {n}.")
    if sd == 0:
        return 0.0
    low, high = 0.0, sd
    while _power(n, high, sd, alpha / tests) < power:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(n, middle, sd, alpha / tests) >= power else (middle, high)
    return high


def plan(pilot: pd.DataFrame, planned: int, *, alpha: float = 0.05, cards: int = 1, power: float = 0.8) -> list[Plan]:
    """What every pair of a pilot's (pictures × methods) needs, allowing for all pairs of all cards (Bonferroni)."""
    table = check_table(pilot)
    pairs = list(combinations([str(name) for name in table.columns], 2))
    found = []
    for a, b in pairs:
        differences = (table[a] - table[b]).dropna().to_numpy()
        if len(differences) < 2:
            raise BadInput(f"a pilot needs at least two pictures that both methods have: {a} and {b} lack them.")
        mean, sd = float(differences.mean()), float(differences.std(ddof=1))
        tests = len(pairs) * cards
        none = mean == 0
        pictures = None if none else needed_pictures(mean, sd, alpha=alpha, tests=tests, power=power)
        detectable = detectable_difference(planned, sd, alpha=alpha, tests=tests, power=power)
        found.append(Plan(a, b, mean, sd, pictures, detectable))
    return found


def _power(n: int, difference: float, sd: float, alpha: float) -> float:
    if sd == 0:
        return 1.0
    critical = stats.t.isf(alpha / 2, n - 1)
    shift = difference / sd * np.sqrt(n)
    if shift - critical > 40:  # scipy's tail sum turns into NaN far out
        return 1.0
    found = float(stats.nct.sf(critical, n - 1, shift))
    return found if np.isfinite(found) else float(stats.norm.sf(critical - shift))
