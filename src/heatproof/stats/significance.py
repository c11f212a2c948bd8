"""Which differences between methods are more than noise: paired tests, effect sizes, critical differences."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, expanded_tails, resampled_means, scored
from heatproof.stats.cluster_robust import FEWEST_CLUSTERS
from heatproof.stats.ranks import FEWEST, ROUNDING, check_table, complete, rank, rounding

COUNTED = 13  # tied differences up to which scipy, too, goes through all signs
PAIR_COLUMNS = (
    "method_a",
    "method_b",
    "controls",
    "n",
    "n_missing",
    "n_zero",
    "statistic",
    "p",
    "p_holm",
    "smallest_p",
    "median_difference",
    "rank_biserial",
    "mean_difference",
    "mean_low",
    "mean_high",
    "winner",
    "significant",
)


@dataclass(frozen=True)
class SignedRank:
    """The paired Wilcoxon signed-rank test of first - second.

    Zero differences are dropped and counted; `smallest_p` is the p if all the others agreed in sign.
    """

    statistic: float
    p: float
    n: int  # pairs of scores, zero differences included
    n_missing: int
    n_zero: int
    smallest_p: float
    median_difference: float
    rank_biserial: float  # -1 ... 1: (sum of positive ranks - sum of negative ranks) / sum of all ranks


@dataclass(frozen=True, eq=False)
class PairwiseTests:
    """Every pair of methods, one row each: differences are method_a - method_b.

    `controls` counts the controls in a pair, and p_holm covers the rows of one such count: which method is better is
    one question, whether it beats a control another. `winner` is the method the signed ranks favour ("" if neither),
    whatever the size of p.
    """

    frame: pd.DataFrame
    methods: tuple[str, ...]
    n_images: int
    higher_is_better: bool
    alpha: float
    level: float
    resamples: int

    def matrix(self, column: str = "p_holm") -> pd.DataFrame:
        """One column as a symmetric methods x methods matrix, NaN on the diagonal."""
        square = pd.DataFrame(np.nan, index=list(self.methods), columns=list(self.methods))
        for row in self.frame.to_dict("records"):
            square.loc[row["method_a"], row["method_b"]] = row[column]
            square.loc[row["method_b"], row["method_a"]] = row[column]
        return square


@dataclass(frozen=True)
class CriticalDifference:
    """Friedman's test and Nemenyi's critical difference: what a critical-difference diagram shows.

    Methods are ordered by mean rank, best first. A group holds two or more methods whose mean ranks lie
    closer than the critical difference; if Friedman's test does not reject, all methods form one group.
    """

    methods: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    n: int
    dropped_images: int
    unscored_methods: tuple[str, ...]
    statistic: float
    p: float
    alpha: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]

    @property
    def rejected(self) -> bool:
        return self.p < self.alpha


def smallest_p(n: int) -> float:
    """The smallest two-sided p that n non-zero differences allow, by the distribution scipy would use."""
    if n == 0:
        return 1.0
    if n <= 50:
        return float(2.0 ** (1 - n))
    expected, variance = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24
    return float(2 * stats.norm.sf(expected / np.sqrt(variance)))


def signed_rank(first: ArrayLike, second: ArrayLike) -> SignedRank:
    """Two-sided Wilcoxon signed-rank test of paired scores; images with a NaN on either side are left out."""
    a, b = scored(first), scored(second)
    if a.shape != b.shape or a.ndim != 1:
        raise BadInput(f"paired scores must be one number per image, got shapes {a.shape} and {b.shape}.")
    return signed_ranks(without_rounding(a, b)[:, None])[0]


def without_rounding(first: FloatArray, second: FloatArray) -> FloatArray:
    """first - second, and 0 where they differ by no more than single precision could: that is no preference."""
    sizes = np.abs(np.stack([first, second]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # pairs of nothing but zeros have no usual size
        usual = np.nan_to_num(np.nanmedian(np.where(sizes > 0, sizes, np.nan), axis=(0, 1)))
    differences = first - second
    return np.where(np.abs(differences) <= ROUNDING * np.maximum(sizes.max(axis=0), usual), 0.0, differences)


def signed_ranks(differences: FloatArray) -> list[SignedRank]:
    """The test of every column of (images × pairs) differences, NaN where an image lacks a score.

    Columns that scipy treats alike (the same number of differences, none tied) are tested in one call: one call per
    pair takes minutes on a large table.
    """
    known = ~np.isnan(differences)
    kept = [column[there] for column, there in zip(differences.T, known.T, strict=True)]
    moved = [column[column != 0] for column in kept]
    alike: dict[tuple[int, int], list[int]] = {}
    for at, column in enumerate(moved):
        tied = len(np.unique(np.abs(column))) < len(column)
        alike.setdefault((len(column), at if tied else -1), []).append(at)
    tests: dict[int, tuple[float, float]] = {}
    for (n, alone), group in alike.items():
        if alone >= 0 and 0 < n <= COUNTED:
            tests[alone] = _counted(moved[alone])
        elif n:
            found = stats.wilcoxon(np.column_stack([moved[at] for at in group]), alternative="two-sided", axis=0)
            pairs = zip(np.atleast_1d(found.statistic).tolist(), np.atleast_1d(found.pvalue).tolist(), strict=True)
            tests.update(zip(group, pairs, strict=True))
    return [_signed_rank(tests.get(at), moved[at], kept[at], len(differences)) for at in range(len(moved))]


def _counted(moved: FloatArray) -> tuple[float, float]:
    """Statistic and p of a few tied differences, over all ways their signs could have fallen.

    The same numbers as scipy's, which loops over 2ⁿ signs in Python: seconds for every pair of a table of shares.
    """
    ranks = stats.rankdata(np.abs(moved))
    signs = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1
    sums, own = signs @ ranks, ranks[moved > 0].sum()
    p = 2 * min((sums <= own).mean(), (sums >= own).mean())  # ranks are halves: sums are exact
    return float(min(own, ranks.sum() - own)), float(p)


def _signed_rank(test: tuple[float, float] | None, moved: FloatArray, kept: FloatArray, images: int) -> SignedRank:
    counts = (len(kept), images - len(kept), len(kept) - len(moved))
    centre = float(np.median(kept)) if len(kept) else float("nan")
    if test is None:  # scipy gives NaN; no difference on any image is no evidence of one
        return SignedRank(0.0, 1.0, *counts, 1.0, centre, 0.0)
    ranks = stats.rankdata(np.abs(moved))
    effect = float((np.sign(moved) * ranks).sum() / ranks.sum())
    return SignedRank(test[0], min(test[1], 1.0), *counts, smallest_p(len(moved)), centre, effect)


def holm(p: ArrayLike) -> FloatArray:
    """Holm's step-down adjustment: the family-wise error stays below alpha where the adjusted p does."""
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any() or (values < 0).any() or (values > 1).any():
        raise BadInput("p-values must be a list of numbers between 0 and 1.")
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(values) else steps
    return adjusted


def compare_pairs(
    table: pd.DataFrame,
    *,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    controls: Collection[str] = (),
) -> PairwiseTests:
    """Test every pair of columns of an (images x methods) table, each pair on the images that have both.

    Holm's adjustment is made by itself for pairs of methods, pairs of a method and a control, and pairs of controls:
    whether two methods differ must not depend on the number of controls.
    """
    scores = check_table(table)
    methods = [str(c) for c in scores.columns]
    pairs = list(combinations(methods, 2))
    if not pairs:
        raise BadInput("comparing needs at least two methods, got one.")
    values = scores.to_numpy()
    first, second = np.triu_indices(len(methods), 1)
    differences = without_rounding(values[:, first], values[:, second])
    tests = signed_ranks(differences)
    family = np.array([(a in controls) + (b in controls) for a, b in pairs])
    adjusted, p = np.empty(len(pairs)), np.array([t.p for t in tests])
    for one in np.unique(family):
        adjusted[family == one] = holm(p[family == one])
    low, high = _mean_limits(differences, level, resamples, seed)
    rows = []
    for i, ((a, b), t) in enumerate(zip(pairs, tests, strict=True)):
        found = differences[:, i][~np.isnan(differences[:, i])]
        ahead = t.rank_biserial if higher_is_better else -t.rank_biserial
        winner = a if ahead > 0 else b if ahead < 0 else ""
        rows.append(
            (
                a,
                b,
                int(family[i]),
                t.n,
                t.n_missing,
                t.n_zero,
                t.statistic,
                t.p,
                float(adjusted[i]),
                t.smallest_p,
                t.median_difference,
                t.rank_biserial,
                float(found.mean()) if len(found) else float("nan"),
                float(low[i]),
                float(high[i]),
                winner,
                bool(adjusted[i] < alpha and winner != ""),
            )
        )
    frame = pd.DataFrame(rows, columns=list(PAIR_COLUMNS))
    return PairwiseTests(frame, tuple(methods), len(scores), higher_is_better, alpha, level, resamples)


def critical_difference(
    table: pd.DataFrame,
    *,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    clusters: NDArray[np.int64] | None = None,
) -> CriticalDifference:
    """Friedman's test on the images all methods have, Nemenyi's critical difference, the groups it leaves.

    Both take rows for independent: images of one cluster (a number each: a patient, a source photo) are one row, their
    mean score, so that `n` counts clusters. Of fewer than six clusters there is no test.
    """
    part = complete(table)
    scores = part.table if clusters is None else _by_cluster(table, part.table, clusters)
    n, k = scores.shape
    if k < 3 or n < 2:
        raise BadInput(f"Friedman's test needs at least 3 methods and 2 images that all of them have, got {k} and {n}.")
    ranks = rank(scores.to_numpy(), higher_is_better, rounding(scores.to_numpy()))
    if (ranks == ranks[:, :1]).all():  # every image ties every method: scipy divides by zero
        statistic, p = 0.0, 1.0
    else:
        statistic, p = (float(x) for x in stats.friedmanchisquare(*ranks.T))
    mean_ranks = ranks.mean(axis=0)
    order = np.argsort(mean_ranks, kind="stable")
    names = tuple(str(part.table.columns[i]) for i in order)
    placed = mean_ranks[order]
    gap = nemenyi(k, n, alpha)
    groups = _groups(names, placed, gap) if p < alpha else (names,)
    return CriticalDifference(
        names,
        tuple(float(r) for r in placed),
        n,
        part.dropped_images,
        part.unscored_methods,
        statistic,
        p,
        alpha,
        gap,
        groups,
    )


def _by_cluster(table: pd.DataFrame, kept: pd.DataFrame, clusters: NDArray[np.int64]) -> pd.DataFrame:
    """The mean score of each cluster and method, over the kept images."""
    if len(clusters) != len(table):
        raise BadInput(f"clusters must number each of the {len(table)} images, got {len(clusters)}.")
    means = kept.groupby(clusters[table.index.get_indexer(kept.index)]).mean()
    if len(means) < FEWEST_CLUSTERS:
        raise BadInput(f"Friedman's test needs at least {FEWEST_CLUSTERS} clusters of images, got {len(means)}.")
    return means


def nemenyi(k: int, n: int, alpha: float = 0.05) -> float:
    """The distance of mean ranks from which two of k methods differ on n images."""
    q = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))


def _groups(names: tuple[str, ...], ranks: FloatArray, gap: float) -> tuple[tuple[str, ...], ...]:
    """The longest runs of neighbours that lie within the gap; a run inside another is left out."""
    runs: list[tuple[int, int]] = []
    for start in range(len(names)):
        end = int(np.searchsorted(ranks, ranks[start] + gap, side="left"))
        if end - start >= 2 and (not runs or end > runs[-1][1]):
            runs.append((start, end))
    return tuple(names[start:end] for start, end in runs)


def _mean_limits(differences: FloatArray, level: float, resamples: int, seed: int) -> tuple[FloatArray, FloatArray]:
    counts = (~np.isnan(differences)).sum(axis=0)
    low = np.full(differences.shape[1], np.nan)
    high = low.copy()
    for n in np.unique(counts[counts >= FEWEST]).tolist():
        alike = counts == n
        means = resampled_means(differences[:, alike], resamples=resamples, seed=seed)
        low[alike], high[alike] = np.nanquantile(means, expanded_tails(n, level), axis=0)
    return low, high
