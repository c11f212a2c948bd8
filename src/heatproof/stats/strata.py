"""Strata by size of the region, with n and cut-offs always in the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, interval, scored
from heatproof.stats.ranks import check_table

Rule = Literal["percentile of the evaluated set", "percentile of a pool", "fixed"]
NAMES = ("small", "medium", "large")


@dataclass(frozen=True)
class Strata:
    """Which stratum each image falls in: up to and including a cut-off belongs below it."""

    names: tuple[str, ...]
    cutoffs: tuple[float, ...]  # one fewer than names, ascending
    n: tuple[int, ...]
    members: tuple[int, ...]  # per image, an index into names
    rule: Rule
    percentiles: tuple[float, ...] | None  # None for fixed cut-offs
    pool_size: int | None  # how many sizes the percentiles were taken of

    def labels(self) -> list[str]:
        return [self.names[i] for i in self.members]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} n = {n}" for name, n in zip(self.names, self.n, strict=True))
        cuts = ", ".join(f"{c:g}" for c in self.cutoffs)
        source = f" ({', '.join(f'{p:g}' for p in self.percentiles)})" if self.percentiles else ""
        return f"{parts}; cut-offs {cuts}: {self.rule}{source}"


def by_percentile(
    sizes: ArrayLike,
    percentiles: Sequence[float] = (33, 67),
    *,
    pool: ArrayLike | None = None,
    names: Sequence[str] = NAMES,
) -> Strata:
    """Cut at percentiles of the evaluated sizes, or of a pool they come from (then n may be uneven)."""
    values = _sizes(sizes)
    source = values if pool is None else _sizes(pool)
    if any(not 0 < p < 100 for p in percentiles):
        raise BadInput(f"percentiles must lie between 0 and 100, got {tuple(percentiles)}.")
    cutoffs = tuple(float(c) for c in np.percentile(source, list(percentiles)))
    rule: Rule = "percentile of the evaluated set" if pool is None else "percentile of a pool"
    return _cut(values, cutoffs, tuple(names), rule, tuple(float(p) for p in percentiles), len(source))


def by_cutoffs(sizes: ArrayLike, cutoffs: Sequence[float], *, names: Sequence[str] = NAMES) -> Strata:
    """Cut at given sizes, so that strata mean the same in every data set."""
    return _cut(_sizes(sizes), tuple(float(c) for c in cutoffs), tuple(names), "fixed", None, None)


def by_stratum(
    table: pd.DataFrame, strata: Strata, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Tidy: method, stratum, n, missing, mean, sd (ddof 1), low, high; an empty stratum keeps its row."""
    scores = check_table(table)
    if len(scores) != len(strata.members):
        raise BadInput(f"scores and strata must cover the same images, got {len(scores)} and {len(strata.members)}.")
    members = np.array(strata.members)
    rows = []
    for method in scores.columns:
        for i, name in enumerate(strata.names):
            values = scores[method].to_numpy()[members == i]
            found = values[~np.isnan(values)]
            bounds = interval(values, level=level, resamples=resamples, seed=seed)
            sd = float(found.std(ddof=1)) if len(found) > 1 else float("nan")
            rows.append((method, name, bounds.n, bounds.missing, bounds.estimate, sd, bounds.low, bounds.high))
    return pd.DataFrame(rows, columns=["method", "stratum", "n", "missing", "mean", "sd", "low", "high"])


def gain(stratified: pd.DataFrame, lowest: str = "small", highest: str = "large") -> pd.Series[float]:
    """Per method, the mean on the highest stratum relative to the lowest, minus 1 (2.69 = 269 % better).

    NaN where the mean of the lowest is missing or 0.
    """
    means = stratified.pivot(index="method", columns="stratum", values="mean")
    absent = [s for s in (lowest, highest) if s not in means.columns]
    if absent:
        raise BadInput(f"no stratum is called {', '.join(absent)}; there are {', '.join(map(str, means.columns))}.")
    ratio = means[highest] / means[lowest].where(means[lowest] != 0)
    return (ratio.replace([np.inf, -np.inf], np.nan) - 1).rename("gain")


def _sizes(sizes: ArrayLike) -> FloatArray:
    values = scored(sizes, "sizes")
    if values.ndim != 1 or not len(values):
        raise BadInput(f"sizes must be one number per image, got shape {values.shape}.")
    if np.isnan(values).any():
        raise BadInput(f"every image needs a size, got {int(np.isnan(values).sum())} missing: leave those images out.")
    return values


def _cut(
    sizes: FloatArray,
    cutoffs: tuple[float, ...],
    names: tuple[str, ...],
    rule: Rule,
    percentiles: tuple[float, ...] | None,
    pool_size: int | None,
) -> Strata:
    if len(names) != len(cutoffs) + 1:
        raise BadInput(f"{len(cutoffs)} cut-offs make {len(cutoffs) + 1} strata, got {len(names)} names.")
    if any(b < a for a, b in pairwise(cutoffs)):
        raise BadInput(f"cut-offs must ascend, got {cutoffs}.")
    members = np.searchsorted(np.array(cutoffs), sizes, side="left")
    counts = np.bincount(members, minlength=len(names))
    return Strata(
        names,
        cutoffs,
        tuple(int(c) for c in counts),
        tuple(int(m) for m in members),
        rule,
        percentiles,
        pool_size,
    )
