"""nDCG of a ranking against a reference, and what it correlates with across setups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray

Lists = Literal["best_first", "paper"]


@dataclass(frozen=True)
class BestOrdering:
    """The order of categories that correlates most with the values, and that correlation (never negative)."""

    rho: float
    ordering: tuple[str, ...]


def ndcg(ranking: Sequence[str], reference: Sequence[str]) -> float:
    """1 if both lists agree; less the more the front of the reference is out of place in the ranking.

    As published: a method at place i of n in the ranking gains n - i and is discounted by 1 / log2(2 + its
    place in the reference), and the sum is divided by that of equal lists.
    """
    if sorted(ranking) != sorted(reference) or len(set(reference)) != len(reference):
        raise BadInput(f"rankings must hold the same methods once each, got {list(ranking)} and {list(reference)}.")
    n = len(reference)
    if not n:
        raise BadInput("nDCG of two rankings needs at least one method, got none.")
    gain = {name: n - place for place, name in enumerate(ranking)}
    discount = 1 / np.log2(2 + np.arange(n))
    reached = float(np.array([gain[name] for name in reference]) @ discount)
    return reached / float(np.arange(n, 0, -1) @ discount)


def correlation(first: FloatArray, second: FloatArray, kind: Literal["pearson", "spearman"]) -> float:
    """Correlation over setups; NaN for fewer than three, or if one side has a hole or does not vary."""
    if len(first) != len(second):
        raise BadInput(f"two series must be of one length, got {len(first)} and {len(second)}.")
    if len(first) < 3 or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return float("nan")
    if _constant(first) or _constant(second):
        return float("nan")
    if kind == "spearman":
        first, second = _ranks(first), _ranks(second)
    with np.errstate(all="ignore"):  # NaN, too, for numbers whose squares no double holds
        return float(np.corrcoef(first, second)[0, 1])


def best_ordering(labels: Sequence[str], values: FloatArray) -> BestOrdering:
    """The largest Spearman correlation any ordering of the categories reaches: pick-the-best, so optimistic.

    Sorting the categories by their mean rank attains it. (Swapping two neighbouring blocks a, b changes only
    the sum of products, by n_a S_b - n_b S_a with S the sum of ranks: the smaller mean belongs first.)
    """
    ranks = _ranks(values)
    names = sorted(set(labels))
    block = np.array(labels)
    ordering = tuple(sorted(names, key=lambda name: (float(ranks[block == name].mean()), name)))
    code = np.array([ordering.index(label) for label in labels], dtype=np.float64)
    return BestOrdering(correlation(code, values, "spearman"), ordering)


def _ranks(values: FloatArray) -> FloatArray:
    # Equal nDCG can differ in the last bit, which would break ties by accident.
    rounded = np.array(values, dtype=np.float64)
    small = np.abs(rounded) < 1e3  # a double has no twelfth decimal for larger values
    rounded[small] = np.round(rounded[small], 12)
    return np.asarray(stats.rankdata(rounded), dtype=np.float64)


def _constant(values: FloatArray) -> bool:
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))
