"""Where the measures disagree: Kendall's tau between their rankings, and the ranks side by side."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from heatproof.report.charts import Ranks, bumps, heatmap, small_multiples
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import section, unfolding
from heatproof.report.typeset import counted, escape, number
from heatproof.stats.ranks import compare_rankings, kendall_tau

SHOWN = 3  # data sets and models in full; further ones are behind a fold


def disagreement(reading: Reading) -> str | None:
    """One part per data set and model with at least two metrics that rank at least two methods."""
    pieces, pictures = [], []
    for dataset, model in reading.settings:
        panels = [
            panel
            for panel in reading.panels
            if (panel.dataset, panel.model) == (dataset, model) and len(reading.standings[panel].ranks) > 1
        ]
        if len(panels) > 1:
            name = f"{model} on {dataset}"
            heading = f"<h3>{escape(name)}</h3>" if len(reading.settings) > 1 else ""
            pictures.append(tau_chart(panels, tau_matrix(reading, panels)))
            pieces.append((name, f'<div class="metric">{heading}{_part(reading, panels)}</div>'))
    if not pieces:
        return None
    lead = "Kendall’s tau between the rankings by two measures: 1 is the same order, 0 no relation, −1 the reverse."
    rest = (
        "Controls are left out. Where the tests of two measures contradict each other, a winner under one of them is a "
        "winner under that one only; an order that the tests leave open may turn by chance."
    )
    body = unfolding(pieces, SHOWN)
    return section("disagreement", "Where the measures disagree", lead, body, picture=pictures[0], rest=rest)


def tau_chart(panels: list[Panel], taus: NDArray[np.float64]) -> str:
    """The matrix of Kendall’s tau as a chart."""
    names = [panel.metric for panel in panels]
    return heatmap(taus, names, names, title="Kendall's tau between measures")


def _part(reading: Reading, panels: list[Panel]) -> str:
    taus = tau_matrix(reading, panels)
    names = [panel.metric for panel in panels]
    figures = [
        (
            "Kendall’s tau between measures",
            tau_chart(panels, taus),
        )
    ]
    if len(panels) <= 10:
        ranked = [method for method in reading.methods if not reading.is_control(method)]
        ranked = [m for m in ranked if any(m in reading.standings[panel].ranks for panel in panels)]
        lines = [
            Ranks(
                method,
                [reading.standings[panel].ranks.get(method, (math.nan,) * 3)[0] for panel in panels],
                reading.colours.get(method),
            )
            for method in ranked
        ]
        if len(lines) <= 24:
            chart = bumps(lines, names, title="Ranks of the methods under each measure")
            figures.append(("Rank of each method under each measure, 1 at the top", chart))
    return f"<p>{_summary(reading, panels, taus)}</p>" + small_multiples(figures)


def tau_matrix(reading: Reading, panels: list[Panel]) -> NDArray[np.float64]:
    """Kendall's tau-b between every two panels, over the methods both have ranked."""
    taus = np.full((len(panels), len(panels)), np.nan)
    for i, j in combinations(range(len(panels)), 2):
        first, second = (_shared(reading, panels, at, other) for at, other in ((i, j), (j, i)))
        if len(first) > 1:
            taus[i, j] = taus[j, i] = kendall_tau(list(first.values()), list(second.values()))
    return taus


def _shared(reading: Reading, panels: list[Panel], at: int, other: int) -> dict[str, float]:
    mine, theirs = reading.standings[panels[at]].ranks, reading.standings[panels[other]].ranks
    return {method: mine[method][0] for method in sorted(mine) if method in theirs}


def _summary(reading: Reading, panels: list[Panel], taus: NDArray[np.float64]) -> str:
    pairs = [(i, j) for i, j in combinations(range(len(panels)), 2) if np.isfinite(taus[i, j])]
    if not pairs:
        return "No two measures rank the same methods."
    i, j = min(pairs, key=lambda pair: float(taus[pair]))
    if taus[i, j] == 1:
        return "All measures put the methods they share in the same order."
    change = compare_rankings(_shared(reading, panels, i, j), _shared(reading, panels, j, i))
    most = change.n_methods * (change.n_methods - 1) // 2
    return (
        f"Furthest apart are <strong>{escape(panels[i].metric)}</strong> and "
        f"<strong>{escape(panels[j].metric)}</strong> (tau {number(float(taus[i, j]), 2)}): "
        f"{len(change.changed)} of {counted(most, 'pair')} of methods change order between them, "
        f"{_solid(reading, panels[i], panels[j], {frozenset((one.first, one.second)) for one in change.changed})}."
    )


def _solid(reading: Reading, first: Panel, second: Panel, changed: set[frozenset[str]]) -> str:
    """How many of the pairs that change order the two measures put in opposite orders, both with significance."""
    won = []
    for panel in (first, second):
        tests = reading.pairs(panel)
        rows = [] if tests is None else tests.frame.loc[tests.frame["significant"]].to_dict("records")
        won.append(
            {frozenset((row["method_a"], row["method_b"])): row["winner"] for row in rows if not row["controls"]}
        )
    turned = sum(won[1].get(pair, winner) != winner for pair, winner in won[0].items() if pair in changed)
    if not turned:
        return "none of them solidly under both"
    return f"{turned} of them solidly under both"
