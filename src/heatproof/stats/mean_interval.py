"""Intervals of means: symmetric bootstrap-t, or cluster-robust where pictures fall into few sampled groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from heatproof.stats.bootstrap import FloatArray, is_share, wilson
from heatproof.stats.bootstrap_t import RESAMPLES, bootstrap_t, moments, skewness
from heatproof.stats.cluster_robust import clustered_means
from heatproof.stats.groups import Groups
from heatproof.stats.page import MANY, SKEWED, few_clusters, fixed_strata, many_clusters, sampled_clusters
from heatproof.stats.ranks import FEWEST, check_table


def mean_intervals(
    table: pd.DataFrame,
    groups: Groups | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    share: bool | None = None,
    stratified: bool = True,
) -> pd.DataFrame:
    """Per column: n, mean, low, high, and whether the scores are so skewed that the interval is somewhat narrow.

    The interval is the one that the tests of `page_tests` use. NaN for fewer than five pictures, and for fewer than six
    sampled groups. A share that is the same on every picture has Wilson's interval, since no resample differs.
    """
    checked = check_table(table)
    values = checked.to_numpy()
    n, mean, error = moments(values)
    whole = groups.of(checked.index) if groups is not None else None
    trials = n
    if whole is not None and few_clusters(whole):
        half = np.full(len(n), np.nan)
        clusterings = sampled_clusters(whole)
        if len(clusterings) <= 2:
            found = clustered_means(values, clusterings)
            half = np.where(found.enough, found.half_width(1 - level), np.nan)
            trials = np.minimum(n, found.clusters)
    else:
        within = fixed_strata(whole) if whole and stratified else None
        together = many_clusters(whole) if whole else None
        trials = n if together is None else np.minimum(n, int(together.max()) + 1)
        (means,) = bootstrap_t(
            [values], strata=[within], clusters=[together], alpha=1 - level, resamples=resamples, seed=seed
        )
        half = means.critical * means.error
        half = np.where(np.isnan(half) & (n >= FEWEST), _students(error, n, level), half)
    half = np.where((n >= FEWEST) & (trials >= 2), half, np.nan)
    low, high = mean - half, mean + half
    if is_share(values) if share is None else share:
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
        for at in np.flatnonzero((error == 0) & (n >= FEWEST)):
            low[at], high[at] = wilson(float(mean[at]), int(trials[at]), level)
    skewed = (np.abs(skewness(values)) > SKEWED) & (n < MANY)
    columns = {"method": list(checked.columns), "n": n, "mean": mean, "low": low, "high": high, "skewed": skewed}
    return pd.DataFrame(columns)


def _students(error: FloatArray, n: NDArray[np.int64], level: float) -> FloatArray:
    """Half of Student's interval: of five pictures there are too few resamples."""
    return np.asarray(stats.t.ppf((1 + level) / 2, np.maximum(n - 1, 1)) * error)
