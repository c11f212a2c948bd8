"""Rankings of methods from an (images x methods) table, with intervals of the ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, expanded_tails, resampled_means, scored

By = Literal["mean", "median"]
ENOUGH = 0.8  # of the images must have a score from every method that is ranked
ROUNDING = 1e-6  # of their size: single precision and other batches move scores by this much
FEWEST = 5  # images: resamples of fewer say next to nothing about others


@dataclass(frozen=True)
class Complete:
    """The part of a table in which every method has a score for every image, and what was left out of it."""

    table: pd.DataFrame
    dropped_images: int
    unscored_methods: tuple[str, ...]
    sparse_methods: tuple[str, ...] = ()  # methods with so few scores that the others would lose too many images


@dataclass(frozen=True)
class Ranking:
    """Methods from best to worst; rank 1 is best, equal scores share the mean rank.

    `low` and `high` bound each rank over resampled images, NaN for fewer than five; `first` is the share it leads.
    """

    methods: tuple[str, ...]
    scores: tuple[float, ...]
    ranks: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    first: tuple[float, ...]
    by: By
    n: int  # images every ranked method has a score for
    dropped_images: int
    unscored_methods: tuple[str, ...]
    sparse_methods: tuple[str, ...]
    level: float

    def rank_of(self) -> dict[str, float]:
        return dict(zip(self.methods, self.ranks, strict=True))

    def frame(self) -> pd.DataFrame:
        """One row per method, best first."""
        return pd.DataFrame(
            {
                "method": self.methods,
                "rank": self.ranks,
                "low": self.low,
                "high": self.high,
                "first": self.first,
                "score": self.scores,
                "n": self.n,
            }
        )


@dataclass(frozen=True)
class ChangedPair:
    """Two methods of which `first` is ahead in one ranking and `second` in the other."""

    first: str
    second: str


@dataclass(frozen=True)
class RankingAgreement:
    """Kendall's tau-b of two rankings (1 same, -1 reversed, NaN if one is all ties) and where they differ."""

    tau: float
    changed: tuple[ChangedPair, ...]
    n_methods: int


def check_table(table: pd.DataFrame) -> pd.DataFrame:
    """The table as floats with unique method names; every function here checks its input with it."""
    if not isinstance(table, pd.DataFrame):
        raise BadInput(f"scores must be a pandas table (images x methods), got {type(table).__name__}.")
    names = [str(c) for c in table.columns]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise BadInput(f"every method must have one column, got several for {', '.join(twice)}.")
    if not names or not len(table):
        raise BadInput("no method has a single score, so there is nothing to rank.")
    values = scored(table.to_numpy(dtype=np.float64, na_value=np.nan))
    return pd.DataFrame(values, index=table.index, columns=names)


def complete(table: pd.DataFrame, *, everyone: bool = False) -> Complete:
    """Leave out methods without any score, then images that some remaining method lacks: means must share images.

    A method whose holes would cost the others more than a fifth of their images is left out first, unless `everyone`
    is to stay: one method that failed nearly everywhere must not decide how all others rank.
    """
    checked = check_table(table)
    if not np.isnan(checked.to_numpy()).any():
        return Complete(checked, 0, (), ())
    unscored = tuple(str(c) for c in checked.columns[checked.isna().all()])
    kept = checked.drop(columns=list(unscored))
    if kept.empty:
        raise BadInput("no method has a single score, so there is nothing to rank.")
    sparse = () if everyone else _sparse(kept)
    full = kept.drop(columns=list(sparse)).dropna()
    if full.empty:
        holes = ", ".join(f"{name} lacks {n}" for name, n in kept.isna().sum().items() if n)
        raise BadInput(f"no image has a score from every method ({holes} of {len(kept)}): compare fewer.")
    return Complete(full, len(kept) - len(full), unscored, sparse)


def _sparse(table: pd.DataFrame) -> tuple[str, ...]:
    """The methods with the most holes, as few as leave the others a full table; none if most would have to go."""
    judged, left = table.dropna(how="all"), list(table.columns)
    while len(judged[left].dropna()) < ENOUGH * len(judged):
        left.remove(str(judged[left].isna().sum().idxmax()))
        if 2 * len(left) < len(table.columns) or len(left) < 2:
            return ()
    return tuple(str(name) for name in table.columns if name not in left)


def rank(scores: ArrayLike, higher_is_better: bool = True, tolerance: FloatArray | float = 0.0) -> FloatArray:
    """Ranks along the last axis: 1 is best, ties share the mean rank, NaN stays unranked (NaN).

    Two scores no further apart than their `tolerance` (of every pair, or of all) are tied.
    """
    values = scored(scores)
    if not higher_is_better:
        values = -values
    mine, other = values[..., :, None], values[..., None, :]
    ahead = (other - mine > tolerance).sum(axis=-1)
    level = (np.abs(other - mine) <= tolerance).sum(axis=-1)
    return np.where(np.isnan(values), np.nan, 1 + ahead + (level - 1) / 2)


def rounding(values: FloatArray) -> FloatArray:
    """(columns, columns): how far two columns' scores may be apart and still be the same number.

    By their own usual size: whether two methods differ must not depend on a third.
    """
    columns = [column[column > 0] for column in np.abs(values).T]
    sizes = np.array([float(np.median(column)) if len(column) else 0.0 for column in columns])
    return np.asarray(ROUNDING * np.maximum(sizes[:, None], sizes), dtype=np.float64)


def rank_methods(
    table: pd.DataFrame,
    *,
    higher_is_better: bool = True,
    by: By = "mean",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Ranking:
    """Rank methods by mean or median over the images all of them have, with intervals over images."""
    part = complete(table)
    values = part.table.to_numpy()
    n = len(values)
    score = values.mean(axis=0) if by == "mean" else np.median(values, axis=0)
    same = rounding(values)
    ranks = rank(score, higher_is_better, same)
    low = high = first = np.full(len(score), np.nan)
    if n >= 2:
        replicates = rank(_replicates(values, by, resamples, seed), higher_is_better, same)
        leads = replicates == replicates.min(axis=1, keepdims=True)
        first = (leads / leads.sum(axis=1, keepdims=True)).mean(axis=0)
    if n >= FEWEST:
        # Ranks are steps: an interval must end on ranks that were really taken.
        tails = expanded_tails(n, level)
        low = np.quantile(replicates, tails[0], axis=0, method="lower")
        high = np.quantile(replicates, tails[1], axis=0, method="higher")
    order = np.argsort(ranks, kind="stable")

    def take(values: FloatArray) -> tuple[float, ...]:
        return tuple(float(values[i]) for i in order)

    return Ranking(
        tuple(str(part.table.columns[i]) for i in order),
        take(score),
        take(ranks),
        take(low),
        take(high),
        take(first),
        by,
        n,
        part.dropped_images,
        part.unscored_methods,
        part.sparse_methods,
        level,
    )


def kendall_tau(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two score or rank vectors over the same methods; NaN if one of them is constant."""
    a, b = scored(first), scored(second)
    if a.shape != b.shape or a.ndim != 1:
        raise BadInput(f"rankings must cover the same methods, got shapes {a.shape} and {b.shape}.")
    if np.isnan(a).any() or np.isnan(b).any():
        raise BadInput("rankings must be complete: leave methods without a score out of both.")
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(stats.kendalltau(a, b).statistic)


def compare_rankings(first: Mapping[str, float], second: Mapping[str, float]) -> RankingAgreement:
    """Compare two {method: rank} mappings (1 = best): tau-b and every pair that changes order.

    In a changed pair, `first` is the method that is ahead in the first ranking.
    """
    odd = sorted(set(first) ^ set(second))
    if odd:
        raise BadInput(f"rankings must cover the same methods, but only one of them has {', '.join(odd)}.")
    names = list(first)
    changed = []
    for a, b in combinations(names, 2):
        if (first[a] - first[b]) * (second[a] - second[b]) < 0:
            changed.append(ChangedPair(a, b) if first[a] < first[b] else ChangedPair(b, a))
    tau = kendall_tau([first[m] for m in names], [second[m] for m in names])
    return RankingAgreement(tau, tuple(changed), len(names))


def _replicates(values: FloatArray, by: By, resamples: int, seed: int) -> FloatArray:
    if by == "mean":
        return resampled_means(values, resamples=resamples, seed=seed)
    rng = np.random.default_rng(seed)
    n, columns = values.shape
    size = max(1, (1 << 22) // (n * columns))
    blocks = [min(size, resamples - start) for start in range(0, resamples, size)]
    return np.concatenate([np.median(values[rng.integers(0, n, (rows, n))], axis=1) for rows in blocks])
