"""Consistency of rankings: do setups of one measurement (model, imputer, segments) rank the methods alike?

Works on any table with columns `method, mif, lif` and, if there is no method called "random", `r_oms`; every
other column describes the setup. MIF: lower is better. LIF, MRG = R-OMS - MIF, LRG = LIF - R-OMS and SRG = LIF
- MIF: higher is better.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from heatproof.stats.bootstrap import FloatArray
from heatproof.stats.ndcg import Lists, best_ordering, correlation, ndcg
from heatproof.stats.ranks import ROUNDING
from heatproof.stats.setups import RANDOM, Scores, read_scores

Measure = Literal["mif", "lif", "srg"]
MEASURES: tuple[Measure, ...] = ("mif", "lif", "srg")
Names = tuple[str, ...]


@dataclass(frozen=True)
class Rankings:
    """Every setup's ranking under one measure, best first, and how far it is from the most frequent one."""

    by_setup: tuple[Names, ...]
    distinct: int
    reference: Names
    reference_count: int  # setups that have exactly the reference ranking
    agreement: float  # mean Kendall tau-b of two setups: 1 if all rank alike, 0 as if by chance; NaN for one setup
    deviation: tuple[tuple[int, ...], ...]  # per setup, |rank here - rank in the reference| at each reference place
    ndcg: tuple[float, ...]
    tied_setups: int  # setups in which two methods score the same (then ordered by name)


@dataclass(frozen=True)
class Association:
    """Spearman correlation of nDCG with one property of the setups.

    For a categorical property it is the largest over all orderings of its values: optimistic by construction.
    NaN if the property or nDCG does not vary.
    """

    rho: dict[Measure, float]
    optimistic: bool
    ordering: dict[Measure, Names] | None


@dataclass(frozen=True)
class OrderDependentPair:
    """Two methods whose order depends on the setup, with the number of setups on each side."""

    measure: Measure
    first: str  # ahead in more setups
    second: str
    first_ahead: int
    second_ahead: int
    tied: int


@dataclass(frozen=True)
class Consistency:
    """Whether the setups agree, under MIF, LIF and SRG, and what their disagreement goes with."""

    setups: tuple[dict[str, Any], ...]
    setup_columns: Names
    methods: Names
    r_oms: tuple[float, ...]
    rankings: dict[Measure, Rankings]
    variance: dict[str, dict[str, float]]  # across setups, ddof 1
    separation: dict[Measure, tuple[float, ...]]  # per setup, without the random method
    separation_vs_r_oms: dict[Measure, float]  # Pearson
    ndcg_vs: dict[str, Association]
    order_dependent: tuple[OrderDependentPair, ...]
    lists: Lists

    @property
    def n_setups(self) -> int:
        return len(self.setups)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, None where undefined. The reference ranking is that of SRG, best first."""
        return {
            "n_setups": self.n_setups,
            "distinct_rankings": {m: self.rankings[m].distinct for m in MEASURES},
            "reference_ranking": list(self.rankings["srg"].reference),
            "variance": {method: {k: _plain(v) for k, v in row.items()} for method, row in self.variance.items()},
            "separation_vs_r_oms": {m: _plain(self.separation_vs_r_oms[m]) for m in MEASURES},
            "ndcg_vs": {name: _association(a) for name, a in self.ndcg_vs.items()},
            "rankings": {m: _rankings_of(self.rankings[m], self.setups) for m in MEASURES},
            "order_dependent_pairs": [asdict(pair) for pair in self.order_dependent],
        }


def _rankings_of(found: Rankings, setups: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    rows = zip(setups, found.by_setup, found.deviation, found.ndcg, strict=True)
    return {
        "reference": list(found.reference),
        "reference_count": found.reference_count,
        "agreement": _plain(found.agreement),
        "setups": [
            {"setup": setup, "ranking": list(names), "deviation": list(steps), "ndcg": _plain(gain)}
            for setup, names, steps, gain in rows
        ],
    }


def consistency(table: pd.DataFrame, *, lists: Lists = "best_first", random: str = RANDOM) -> Consistency:
    """The consistency of the setups of one table, with one row per setup and method.

    `lists="paper"` feeds nDCG the LIF and SRG lists worst first, as the published analysis did, which rewards
    agreement about the losers. `random` names the method that is left out of the separation.
    """
    scores = read_scores(table, random)
    step = ROUNDING * max(float(np.abs(scores.mif).max()), float(np.abs(scores.lif).max()))
    raw: dict[Measure, FloatArray] = {"mif": scores.mif, "lif": scores.lif, "srg": scores.lif - scores.mif}
    values = {m: without_noise(raw[m], step) for m in MEASURES}
    rankings = {m: _rankings(values[m], scores.methods, m, lists) for m in MEASURES}
    contenders = [i for i, name in enumerate(scores.methods) if name != random]
    separation = {m: _separation(raw[m][:, contenders]) for m in MEASURES}
    return Consistency(
        scores.setups,
        scores.setup_columns,
        scores.methods,
        tuple(float(r) for r in scores.r_oms),
        rankings,
        _variance(scores),
        {m: tuple(float(s) for s in separation[m]) for m in MEASURES},
        {m: correlation(separation[m], scores.r_oms, "pearson") for m in MEASURES},
        _associations(scores, rankings),
        tuple(pair for m in MEASURES for pair in _order_dependent(values[m], scores.methods, m)),
        lists,
    )


def without_noise(values: FloatArray, step: float) -> FloatArray:
    """Rounded to whole steps: values that differ only by the order of summation become ties."""
    return np.asarray(np.round(values / step) * step, dtype=np.float64) if step else values


def reference_ranking(rankings: list[Names]) -> tuple[Names, int]:
    """The most frequent ranking and its count; of equally frequent ones, the nearest to all, then by name."""
    counts = Counter(rankings)
    most = max(counts.values())

    def distance(candidate: Names) -> int:
        place = {name: i for i, name in enumerate(candidate)}
        return sum(abs(place[name] - i) for other in rankings for i, name in enumerate(other))

    best = min((r for r, c in counts.items() if c == most), key=lambda r: (distance(r), r))
    return best, most


def _rankings(values: FloatArray, methods: Names, measure: Measure, lists: Lists) -> Rankings:
    gains = -values if measure == "mif" else values
    by_setup = [tuple(methods[i] for i in np.argsort(-row, kind="stable")) for row in gains]
    reference, count = reference_ranking(by_setup)
    worst_first = lists == "paper" and measure != "mif"
    deviation = tuple(
        tuple(abs(ranking.index(name) - place) for place, name in enumerate(reference)) for ranking in by_setup
    )
    return Rankings(
        tuple(by_setup),
        len(set(by_setup)),
        reference,
        count,
        mean_tau(values),
        deviation,
        tuple(ndcg(r[::-1], reference[::-1]) if worst_first else ndcg(r, reference) for r in by_setup),
        sum(len(set(row)) < len(row) for row in values.tolist()),
    )


def mean_tau(values: FloatArray) -> float:
    """The mean Kendall tau-b over all pairs of rows; rows that tie everything have none."""
    first, second = np.triu_indices(values.shape[1], 1)
    signs = np.sign(values[:, first] - values[:, second])
    untied = (signs != 0).sum(1)
    with np.errstate(invalid="ignore"):
        taus = signs @ signs.T / np.sqrt(np.outer(untied, untied))
    between = taus[np.triu_indices(len(values), 1)]
    known = between[~np.isnan(between)]
    return float(known.mean()) if len(known) else float("nan")


def _variance(scores: Scores) -> dict[str, dict[str, float]]:
    gains = {
        "mrg": scores.r_oms[:, None] - scores.mif,
        "lrg": scores.lif - scores.r_oms[:, None],
        "srg": scores.lif - scores.mif,
    }
    enough = len(scores.setups) > 1
    return {
        method: {k: float(g[:, i].var(ddof=1)) if enough else float("nan") for k, g in gains.items()}
        for i, method in enumerate(scores.methods)
    }


def _separation(values: FloatArray) -> FloatArray:
    """Mean absolute difference over all pairs of methods, per setup; NaN for fewer than two methods."""
    first, second = np.triu_indices(values.shape[1], 1)
    if not len(first):
        return np.full(len(values), np.nan)
    return np.asarray(np.abs(values[:, first] - values[:, second]).mean(axis=1), dtype=np.float64)


def _associations(scores: Scores, rankings: dict[Measure, Rankings]) -> dict[str, Association]:
    quality = {m: np.array(rankings[m].ndcg) for m in MEASURES}
    found = {
        "r_oms": Association({m: correlation(quality[m], scores.r_oms, "spearman") for m in MEASURES}, False, None)
    }
    for column in scores.setup_columns:
        values = pd.Series([setup[column] for setup in scores.setups])
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
            numbers = values.to_numpy(dtype=np.float64)
            rho = {m: correlation(quality[m], numbers, "spearman") for m in MEASURES}
            found[column] = Association(rho, False, None)
            continue
        labels = [str(v) for v in values]
        best = {m: best_ordering(labels, quality[m]) for m in MEASURES}
        found[column] = Association({m: best[m].rho for m in MEASURES}, True, {m: best[m].ordering for m in MEASURES})
    return found


def _order_dependent(values: FloatArray, methods: Names, measure: Measure) -> list[OrderDependentPair]:
    gains = -values if measure == "mif" else values
    found = []
    for i, j in combinations(range(len(methods)), 2):
        difference = gains[:, i] - gains[:, j]
        ahead, behind = int((difference > 0).sum()), int((difference < 0).sum())
        if ahead and behind:
            a, b = (i, j) if ahead >= behind else (j, i)
            tied = len(difference) - ahead - behind
            found.append(
                OrderDependentPair(measure, methods[a], methods[b], max(ahead, behind), min(ahead, behind), tied)
            )
    return found


def _association(found: Association) -> dict[str, Any]:
    plain: dict[str, Any] = {m: _plain(found.rho[m]) for m in MEASURES}
    plain["optimistic"] = found.optimistic
    if found.ordering is not None:
        plain["ordering"] = {m: list(found.ordering[m]) for m in MEASURES}
    return plain


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
