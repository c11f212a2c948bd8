"""Reliability of judgments: Krippendorff's alpha of rankings, Spearman between methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, expanded_tails, scored, weights
from heatproof.stats.cluster_robust import FEWEST_CLUSTERS
from heatproof.stats.ordinal_alpha import ordinal_alpha, weighted_alpha
from heatproof.stats.ranks import FEWEST, check_table, rank


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's ordinal alpha of the rankings, with its interval over mosaics; NaN where these are too few.

    1: every mosaic ranks the methods alike; 0: as if the ranks were dealt at random.
    """

    alpha: float
    low: float
    high: float
    n_mosaics: int  # mosaics that rank at least two methods
    dropped_mosaics: int
    n_methods: int
    level: float
    resamples: int
    n_clusters: int | None = None  # sampled groups that were resampled whole; None: mosaics were


@dataclass(frozen=True, eq=False)
class InterMethod:
    """Spearman's correlation of every two methods over the mosaics that have both, and how many those are."""

    rho: pd.DataFrame
    n: pd.DataFrame


@dataclass(frozen=True)
class JointFailure:
    """Two methods that rise and fall together while both score badly: agreeing is no evidence of truth."""

    first: str
    second: str
    rho: float
    n: int
    mean_first: float
    mean_second: float
    both_bad: float  # share of the common mosaics on which both are worse than chance

    def __str__(self) -> str:
        return (
            f"{self.first} and {self.second} agree (Spearman {self.rho:.2f}, n = {self.n}) while both "
            f"score badly (means {self.mean_first:.2f} and {self.mean_second:.2f}): they may share a failure."
        )


@dataclass(frozen=True, eq=False)
class Agreement:
    """Whether data sets (or models) rank the methods alike: alpha with the data sets as raters.

    The frames hold ranks, a row per data set and a column per method; 1 is best, ties share the mean rank, and a
    method without any score has none. `n` holds how many mosaics each method was scored on, `mosaics` how many there
    are: where a method is undefined, its mean and median are over the others.
    """

    alpha_mean: float
    alpha_median: float
    mean_ranks: pd.DataFrame
    median_ranks: pd.DataFrame
    n: pd.DataFrame
    mosaics: pd.Series[int]


def krippendorff_alpha(scores: ArrayLike) -> float:
    """Ordinal alpha of a (mosaics x methods) array of raw scores, NaN = missing.

    Methods are ranked within each mosaic (ties share the mean rank); mosaics are raters, methods are units.
    Mosaics that rank fewer than two methods say nothing about order and are left out.
    """
    return ordinal_alpha(_ranked(scores))


def alpha_interval(
    scores: ArrayLike,
    clusters: NDArray[np.int64] | None = None,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Alpha:
    """Alpha with an interval over resampled mosaics, its percentiles read further out the fewer mosaics there are.

    Mosaics of one cluster (0 … k−1 each: a patient, a source photo) are drawn together; of fewer than six clusters
    there is no interval.

    A mosaic drawn twice is not compared with its own copy: it would agree with itself and lift alpha. Simulated, plain
    percentiles of six mosaics hold the true alpha in 79 to 96 of 100 cases and these in 88 to 99; where mosaics agree
    almost wholly (alpha 0.8) they stay somewhat narrow. Of fewer than five there are none: they would hold it in 50 to
    93 of 100, however far out they are read.
    """
    values = scored(scores)
    ranks = _ranked(values)
    n, m = ranks.shape
    of = np.arange(n) if clusters is None else np.unique(clusters[_ranking(values)], return_inverse=True)[1].ravel()
    units, fewest = int(of.max()) + 1, FEWEST if clusters is None else FEWEST_CLUSTERS
    low = high = float("nan")
    if units >= fewest:
        drawn = (weighted_alpha(ranks, block[:, of]) for block in weights(units, resamples, seed))
        replicates = np.concatenate(list(drawn))
        replicates = replicates[~np.isnan(replicates)]
        if len(replicates):
            low, high = (float(q) for q in np.quantile(replicates, expanded_tails(units, level)))
    dropped = len(values) - n
    counted = None if clusters is None else units
    return Alpha(krippendorff_alpha(values), low, high, n, dropped, m, level, resamples, counted)


def spearman_matrix(table: pd.DataFrame) -> InterMethod:
    """Method x method Spearman correlation, pairwise complete; NaN for fewer than 3 pairs or a constant."""
    scores = check_table(table)
    present = scores.notna().astype(int)
    return InterMethod(scores.corr(method="spearman", min_periods=3), present.T @ present)


def joint_failures(
    table: pd.DataFrame, *, higher_is_better: bool = True, chance: float = 0.5, rho: float = 0.7
) -> tuple[JointFailure, ...]:
    """Pairs that correlate at `rho` or more although both have a mean worse than `chance`."""
    scores = check_table(table)
    between = spearman_matrix(scores)
    found = []
    for a, b in combinations(list(scores.columns), 2):
        both = scores[[a, b]].dropna().to_numpy()
        correlation = float(between.rho[a].to_numpy()[scores.columns.get_loc(b)])
        bad = both < chance if higher_is_better else both > chance
        if not len(both) or not correlation >= rho:
            continue
        means = both.mean(axis=0)
        if ((means < chance) if higher_is_better else (means > chance)).all():
            share = float(bad.all(axis=1).mean())
            found.append(JointFailure(a, b, correlation, len(both), float(means[0]), float(means[1]), share))
    return tuple(found)


def agreement(tables: Mapping[str, pd.DataFrame], *, higher_is_better: bool = True) -> Agreement:
    """Alpha of the rankings several data sets or models give, by mean and by median.

    Every method's mean is over all mosaics that define its score: a method that is undefined on some must not take
    those mosaics from the others.
    """
    if len(tables) < 2:
        raise BadInput(f"agreement needs at least two data sets or models, got {len(tables)}.")
    parts = {name: check_table(table) for name, table in tables.items()}
    methods = sorted({str(c) for part in parts.values() for c in part.columns})
    for name, part in parts.items():
        lacking = [m for m in methods if m not in part.columns]
        if lacking:
            raise BadInput(f"all data sets must score the same methods, but {name} lacks {', '.join(lacking)}.")
    ranks = {
        by: pd.DataFrame(
            [rank(part[methods].agg(by).to_numpy(), higher_is_better) for part in parts.values()],
            index=list(parts),
            columns=methods,
        )
        for by in ("mean", "median")
    }
    counts = pd.DataFrame({name: part[methods].count() for name, part in parts.items()}).T
    sizes = pd.Series({name: len(part) for name, part in parts.items()})
    # Ranks are ranked again, and there the largest is best.
    return Agreement(
        krippendorff_alpha(-ranks["mean"]),
        krippendorff_alpha(-ranks["median"]),
        ranks["mean"],
        ranks["median"],
        counts,
        sizes,
    )


def _ranking(values: FloatArray) -> NDArray[np.bool_]:
    """The mosaics that rank at least two methods."""
    return np.asarray((~np.isnan(values)).sum(axis=1) >= 2, dtype=np.bool_)


def _ranked(scores: ArrayLike) -> FloatArray:
    values = scored(scores)
    if values.ndim != 2 or values.shape[1] < 2:
        raise BadInput(f"scores must be (mosaics, at least 2 methods), got shape {values.shape}.")
    ranks = rank(values[_ranking(values)])
    if len(ranks) < 2:
        raise BadInput(f"alpha needs two mosaics that rank at least two methods, got {len(ranks)} of {len(values)}.")
    judged = ranks[:, (~np.isnan(ranks)).sum(axis=0) >= 2]  # a method judged once has no pair
    if len(np.unique(judged[~np.isnan(judged)])) < 2:
        raise BadInput("alpha is undefined: the mosaics share no methods, or tie all that they share.")
    return ranks
