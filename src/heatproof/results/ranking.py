"""Methods from best to worst under one metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from heatproof.stats import bootstrap, ranks
from heatproof.stats.against_blind import against_blind
from heatproof.stats.bootstrap_t import RESAMPLES
from heatproof.stats.decisions import FINE
from heatproof.stats.mean_interval import mean_intervals
from heatproof.stats.rank_sets import rank_sets

if TYPE_CHECKING:
    from heatproof.results.results import Results


@dataclass(frozen=True, eq=False)
class Ranking:
    """Methods from best to worst under one metric, with intervals of the means and simultaneous sets of ranks.

    The ranks a method can have follow from the same tests as the verdict and the pairs: it is below those that beat it,
    and above those it beats. They hold at once for all methods of the page.
    """

    metric: str
    higher_is_better: bool
    # method, n, mean, low, high, skewed, rank, rank_low, rank_high (among the methods), control, and against_blind:
    # "clear" of every blind control, "level" with some, "beaten" by some, "unknown" where none was run
    table: pd.DataFrame

    def __str__(self) -> str:
        arrow = "higher" if self.higher_is_better else "lower"
        rows = self.table.to_string(index=False, na_rep="", float_format="{:.4g}".format)
        return f"{self.metric} ({arrow} is better)\n{rows}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from heatproof.results.notebook import ranking_html  # it needs this class

        return ranking_html(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.table["method"])


def ranked(results: Results, metric: str, wide: pd.DataFrame) -> Ranking:
    """The ranking of these pictures × methods, of one model and data set."""
    higher = results.higher_is_better(metric)
    controls = [method for method in wide.columns if results.is_control(method)]
    contest = wide.drop(columns=controls)
    alone = not len(contest.columns)
    shared = ranks.complete(wide if alone else contest).table
    own = ranks.rank_methods(shared, higher_is_better=higher, resamples=1)
    if not alone:
        shared = shared.join(wide.loc[shared.index, controls].dropna(axis=1))
    everyone = ranks.rank_methods(shared, higher_is_better=higher, resamples=1)
    share = results.is_share(metric) or bootstrap.is_share(wide)
    ((dataset, model),) = {(str(d), str(m)) for d, m, _ in wide.index}
    alike = shared[list(everyone.methods)].droplevel(["dataset", "model"])
    level = results.page.level
    # At a level as small as that of a look more resamples are needed, and the groups have no fixed shares.
    spans = mean_intervals(
        alike,
        results.groups.get(dataset),
        level=1 - level,
        resamples=max(RESAMPLES, int(np.ceil(FINE / level))),
        share=share,
        stratified=not results.page.looks,
    )
    tests = results.page.tests.get((metric, dataset, model))
    sets = rank_sets(own.methods, tests.beats() if tests else ())
    places = dict(zip(own.methods, own.ranks, strict=True))
    blind = against_blind(tests, own.methods, [method for method in controls if results.is_blind(method)])
    missing = float("nan")
    placed = []
    for method in everyone.methods:
        if method in controls:
            placed.append((missing, missing, missing))
        else:  # means are of pictures that all methods have, tests of those that two have
            rank, (low, high) = places[method], sets[method]
            placed.append((rank, float(min(low, np.floor(rank))), float(max(high, np.ceil(rank)))))
    table = pd.DataFrame(
        {
            "method": everyone.methods,
            "n": everyone.n,
            "mean": everyone.scores,
            "low": spans["low"].to_numpy(),
            "high": spans["high"].to_numpy(),
            "skewed": spans["skewed"].to_numpy(),
            "rank": [rank for rank, _, _ in placed],
            "rank_low": [low for _, low, _ in placed],
            "rank_high": [high for _, _, high in placed],
            "control": [method in controls for method in everyone.methods],
            "against_blind": ["control" if m in controls else blind[m] for m in everyone.methods],
        }
    )
    return Ranking(metric, higher, table)
