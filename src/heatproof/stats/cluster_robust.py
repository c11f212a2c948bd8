"""Cluster-robust variances of means: CR3 (the cluster jackknife) with Bell–McCaffrey degrees of freedom.

Paper: Bell & McCaffrey 2002, "Bias reduction in standard errors for linear regression with multi-stage samples";
Cameron, Gelbach & Miller 2011, "Robust inference with multiway clustering"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray
from heatproof.stats.missing_patterns import alike

FEWEST_CLUSTERS = 6
LARGEST_SHARE = 0.5  # of the images in one cluster: with more, the rest says too little about how clusters vary


@dataclass(frozen=True)
class ClusteredMeans:
    """Per column: mean, its cluster-robust standard error and degrees of freedom, and the p of a two-sided t test.

    `clusters` is the smaller number of clusters of the clusterings. `p` is NaN where there are fewer than six, where
    one holds more than half of the images, or where clusters do not vary at all.
    """

    n: NDArray[np.int64]
    clusters: NDArray[np.int64]
    mean: FloatArray
    error: FloatArray
    df: FloatArray
    p: FloatArray
    enough: NDArray[np.bool_]  # clusters needed for a verdict

    def half_width(self, alpha: float) -> FloatArray:
        """Of the interval mean ± t(1 − alpha/2, df) · standard error."""
        with np.errstate(invalid="ignore"):
            return np.asarray(stats.t.ppf(1 - alpha / 2, self.df) * self.error, dtype=np.float64)


def clustered_means(block: FloatArray, clusterings: Sequence[NDArray[np.int64]]) -> ClusteredMeans:
    """The means of an (images × columns) table whose images fall into clusters of one or two crossed kinds.

    NaN marks images a column leaves out: clusters are counted among the others.
    """
    if len(clusterings) not in (1, 2):
        raise BadInput(f"clusters of one or two crossed kinds can be allowed for, got {len(clusterings)}.")
    if any(len(index) != len(block) for index in clusterings):
        raise BadInput(f"cluster ids must be one per image ({len(block)}).")
    columns = block.shape[1]
    n, clusters = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    mean, error, df = np.full((3, columns), np.nan)
    enough = np.zeros(columns, dtype=np.bool_)
    for there, own in alike(block):
        if there.sum() < 2:
            continue
        values = block[np.ix_(there, own)]
        ids = [np.unique(index[there], return_inverse=True)[1].ravel() for index in clusterings]
        n[own], mean[own] = len(values), values.mean(axis=0)
        clusters[own] = min(int(index.max()) + 1 for index in ids)
        enough[own] = all(_enough(index) for index in ids)
        variance, freedom = _variance(values, ids)
        error[own], df[own] = np.sqrt(variance), freedom
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * stats.t.sf(np.abs(mean) / error, df)
    return ClusteredMeans(n, clusters, mean, error, df, np.where(enough & (error > 0), p, np.nan), enough)


def cr3_variance(values: FloatArray, index: NDArray[np.int64]) -> FloatArray:
    """Variance of each column's mean, from leaving out one cluster at a time; NaN for a single cluster."""
    sizes = np.bincount(index).astype(np.float64)
    count, n = len(sizes), float(len(values))
    if count < 2:
        return np.full(values.shape[1], np.nan)
    centred = values - values.mean(axis=0)
    size = np.abs(values).max(axis=0, initial=0.0)
    sums = np.stack([np.bincount(index, column, minlength=count) for column in centred.T], axis=1)
    found = (count - 1) / count * ((sums / (1 - sizes / n)[:, None]) ** 2).sum(axis=0) / n**2
    return np.where(found <= (1e-12 * size) ** 2, 0.0, found)  # rounding noise of clusters that are all alike


def bell_mccaffrey_df(sizes: FloatArray) -> float:
    """Degrees of freedom of the CR3 variance of a mean, if images were independent; G − 1 for equal clusters."""
    n = float(sizes.sum())
    if len(sizes) < 2:
        return float("nan")
    a = 1 / (1 - sizes / n)
    between = ((a * sizes**2).sum() ** 2 - (a**2 * sizes**4).sum()) / n**2
    return float(n**2 / ((sizes**2).sum() + between))


def _variance(values: FloatArray, ids: Sequence[NDArray[np.int64]]) -> tuple[FloatArray, float]:
    """Cameron, Gelbach & Miller's sum for two kinds, and never less than that of either: it can be negative."""
    alone = [cr3_variance(values, index) for index in ids]
    df = min(bell_mccaffrey_df(np.bincount(index).astype(np.float64)) for index in ids)
    if len(ids) == 1:
        return alone[0], df
    cells = np.unique(ids[0] * (int(ids[1].max()) + 1) + ids[1], return_inverse=True)[1].ravel()
    both = alone[0] + alone[1] - cr3_variance(values, cells)
    return np.maximum(both, np.maximum(alone[0], alone[1])), df


def _enough(index: NDArray[np.int64]) -> bool:
    sizes = np.bincount(index)
    return len(sizes) >= FEWEST_CLUSTERS and bool(sizes.max() <= LARGEST_SHARE * len(index))
