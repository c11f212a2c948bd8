"""Reliability of the mosaic judgments: alpha of rankings, Spearman between methods, agreement across settings."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.errors import HeatproofError
from heatproof.report.charts import Estimate, heatmap, interval_ranking, small_multiples
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold
from heatproof.report.typeset import MISSING, counted, escape, listed, number
from heatproof.stats.cluster_robust import FEWEST_CLUSTERS
from heatproof.stats.ranks import FEWEST as FEWEST_MOSAICS
from heatproof.stats.reliability import agreement, alpha_interval, joint_failures, spearman_matrix

SIGNED = "signed methods only"
FEWEST = 3  # methods: the order of two is one bit, and its alpha jumps


def alphas(reading: Reading, panels: list[Panel]) -> str:
    """Krippendorff's alpha with its interval, per ratio, for every data set and model."""
    charts, bare = [], []
    for dataset, model in dict.fromkeys((panel.dataset, panel.model) for panel in panels):
        rows = [
            _alpha(f"{panel.metric}{suffix}", table, reading.clusters(dataset, table.index))
            for panel in panels
            if (panel.dataset, panel.model) == (dataset, model)
            for suffix, table in _tables(reading, panel)
        ]
        title = f"Krippendorff's alpha, {model} on {dataset}"
        charts.append((f"{model} · {dataset}", interval_ranking(rows, title=title, reference=0.0)))
        bare += [f"{row.label} ({row.note}; {model} on {dataset})" for row in rows if _bare(row)]
    return (
        "<h3>Do the mosaics agree on the ranking?</h3><p>Krippendorff’s alpha, ordinal, each mosaic taken as a "
        "judge that ranks the methods (controls left out): 1 if all rank alike, 0 if ranks are random."
        " Bars are 95&nbsp;% bootstrap intervals over mosaics. FNR and FPR would have the alphas of "
        "recall and specificity.</p>" + small_multiples(charts) + _without_interval(bare)
    )


def _bare(row: Estimate) -> bool:
    """A dot without a bar."""
    return math.isfinite(row.value) and (math.isnan(row.low) or row.low == row.high)


def _without_interval(bare: list[str]) -> str:
    if not bare:
        return ""
    why = (
        f"fewer than {FEWEST_MOSAICS} mosaics, or {FEWEST_CLUSTERS} groups of them, say next to nothing about others, "
        "and where all agree no resample differs"
    )
    return f'<p class="note">A dot without a bar is no certainty ({why}): {escape(listed(bare))}.</p>'


def _tables(reading: Reading, panel: Panel) -> list[tuple[str, pd.DataFrame]]:
    """The panel's contenders; where some are never negative, once more without those, to be fair."""
    table = reading.contenders(panel)
    signed = [method for method in table.columns if reading.info.method(method).signed]
    both = [("", table)]
    if len(signed) < len(table.columns):
        both.append((f", {SIGNED}", table[signed]))
    return both


def _alpha(label: str, table: pd.DataFrame, clusters: dict[str, NDArray[np.int64]]) -> Estimate:
    """Alpha with its interval, by whole sampled groups; none where these are of two crossed kinds."""
    try:
        found = alpha_interval(table.to_numpy(dtype=float), next(iter(clusters.values()), None))
    except HeatproofError:
        return Estimate(label, math.nan, math.nan, math.nan, note="too few scores")
    if found.n_methods < FEWEST:
        return Estimate(label, math.nan, math.nan, math.nan, note=f"only {counted(found.n_methods, 'method')}")
    dropped = f", {found.dropped_mosaics} left out" if found.dropped_mosaics else ""
    note = f"{counted(found.n_methods, 'method')}, {counted(found.n_mosaics, 'mosaic')}{dropped}"
    if found.n_clusters is not None:
        note += f" of {counted(found.n_clusters, next(iter(clusters)))}"
    crossed = len(clusters) > 1
    low, high = (math.nan, math.nan) if crossed else (found.low, found.high)
    return Estimate(label, found.alpha, low, high, colour=0, note=note)


def correlations(reading: Reading, panels: list[Panel], chance: Callable[[Panel], float]) -> str:
    """Spearman between methods under the ratio most of them can be judged by, and shared failures."""
    first = panels[0].metric
    charts, warnings = [], []
    for panel in (panel for panel in panels if panel.metric == first):
        table = reading.contenders(panel)
        if len(table.columns) < 2:
            continue
        between = spearman_matrix(table)
        names = [str(name) for name in between.rho.columns]
        rho, count = between.rho.to_numpy(dtype=float), between.n.to_numpy(dtype=int)
        notes = [
            [f"{a} × {b}: {number(rho[i, j], 2)}, n = {count[i, j]}" for j, b in enumerate(names)]
            for i, a in enumerate(names)
        ]
        chart = heatmap(rho, names, names, title=f"Spearman between methods, {first}", notes=notes)
        charts.append((reading.named(panel) or first, chart))
        higher = reading.higher_is_better(first)
        where = f" ({reading.named(panel)})" if reading.named(panel) else ""
        failures = joint_failures(table, higher_is_better=higher, chance=chance(panel))
        warnings += [f"{failure}{where}" for failure in failures]
    if not charts:
        return ""
    items = "".join(f"<li>{escape(warning)}</li>" for warning in warnings)
    warned = (
        f'<ul class="hole">{items}</ul>'
        if items
        else "<p>No two methods agree highly while both score worse than chance.</p>"
    )
    return (
        f"<h3>Do methods find the same mosaics hard?</h3><p>Spearman’s correlation of {escape(first)} between "
        "every two methods, over the mosaics that have both.</p>" + small_multiples(charts) + warned
    )


def agreements(reading: Reading, panels: list[Panel]) -> str:
    """Whether data sets (on one model) and models (on one data set) rank the methods alike."""
    rows, ranks = [], []
    for metric in dict.fromkeys(panel.metric for panel in panels):
        here = [panel for panel in panels if panel.metric == metric]
        for fixed, varied in (("model", "dataset"), ("dataset", "model")):
            for name in dict.fromkeys(getattr(panel, fixed) for panel in here):
                group = {getattr(p, varied): reading.contenders(p) for p in here if getattr(p, fixed) == name}
                found = _agreement(group, reading.higher_is_better(metric))
                if found is None:
                    continue
                judges = "data sets" if varied == "dataset" else "models"
                by_mean, by_median, count, left_out, table = found
                rows.append(
                    f'<tr><th scope="row">{escape(metric)}</th><td>{len(group)} {judges}</td>'
                    f'<td>{escape(name)}</td><td class="num">{count}</td><td class="num">{left_out}</td>'
                    f'<td class="num">{_number(by_mean)}</td><td class="num">{_number(by_median)}</td></tr>'
                )
                ranks.append(f"<h4>{escape(metric)}, {judges} on {escape(name)}</h4>{table}")
    if not rows:
        return ""
    heads = ("ratio", "judges", "on", "methods", "undefined", "alpha of means", "alpha of medians")
    head = "".join(f'<th scope="col"{" class=num" if at > 2 else ""}>{name}</th>' for at, name in enumerate(heads))
    return (
        "<h3>Does the ranking carry over?</h3><p>Alpha between the rankings that data sets, or models, give the "
        "methods that all of them score: by mean and by median, each method over the mosaics where its score is "
        "defined. “Undefined” counts the missing scores of all methods and mosaics.</p>"
        f"{_table(head, rows)}" + fold("The rankings themselves, by mean and by median", "".join(ranks))
    )


def _agreement(tables: dict[str, pd.DataFrame], higher: bool) -> tuple[float, float, int, int, str] | None:
    """Over the methods that all tables score; None where there are fewer than two of either."""
    shared = [
        method
        for method in next(iter(tables.values())).columns
        if all(method in table.columns for table in tables.values())
    ]
    if len(tables) < 2 or len(shared) < 2:
        return None
    try:
        found = agreement({name: table[shared] for name, table in tables.items()}, higher_is_better=higher)
    except HeatproofError:
        return None
    head = "".join(f'<th scope="col" class="num">{escape(m)}</th>' for m in found.mean_ranks.columns)
    lines = []
    for name in found.n.index:
        of = int(found.mosaics[name])
        cells = "".join(f'<td class="num">{int(value)}</td>' for value in found.n.loc[name])
        lines.append(f'<tr><th scope="row">{escape(name)}, mosaics of {of}</th>{cells}</tr>')
    for by, ranks in (("mean", found.mean_ranks), ("median", found.median_ranks)):
        for name in ranks.index:
            cells = "".join(f'<td class="num">{_rank(float(value))}</td>' for value in ranks.loc[name])
            lines.append(f'<tr><th scope="row">{escape(name)}, by {by}</th>{cells}</tr>')
    table = _table(f"<th></th>{head}", lines)
    left_out = int((-found.n).add(found.mosaics, axis=0).to_numpy().sum())
    return found.alpha_mean, found.alpha_median, len(found.mean_ranks.columns), left_out, table


def _rank(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else MISSING


def _table(head: str, rows: list[str]) -> str:
    body = "".join(rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _number(value: float) -> str:
    return number(value, 2) if math.isfinite(value) else MISSING
