"""The same maps normalised by other rules: the choice that AUC-IoU leaves open."""

from __future__ import annotations

import math

from heatproof.report.charts import Ranks, bumps, small_multiples
from heatproof.report.reading import Panel, Reading
from heatproof.report.typeset import escape, number
from heatproof.stats.ranks import kendall_tau


def normalising_rules(reading: Reading, main: Panel) -> str | None:
    """Ranks under every rule side by side, and how far the furthest is from the main ranking."""
    panels = [
        panel
        for panel in reading.panels
        if (panel.dataset, panel.model) == (main.dataset, main.model)
        and reading.info.get("metrics", {}).get(panel.metric, {}).get("name") == "auc_iou"
        and len(reading.standings[panel].ranks) > 1
    ]
    if main not in panels or len(panels) < 2:
        return None
    ranks = {panel: reading.standings[panel].ranks for panel in panels}
    methods = [m for m in reading.methods if any(m in ranks[panel] for panel in panels)]
    lines = [
        Ranks(m, [ranks[panel].get(m, (math.nan,) * 3)[0] for panel in panels], reading.colours.get(m)) for m in methods
    ]
    names = [rule_name(panel.metric) for panel in panels]
    chart = bumps(lines, names, title="Ranks by AUC-IoU under each normalising rule")
    figure = small_multiples([("Rank by AUC-IoU under each normalising rule, 1 at the top", chart)])
    return f"<h4>By another normalising rule</h4><p>{_said(reading, main, panels)}</p>{figure}"


def rule_name(label: str) -> str:
    """`auc_iou(rule=rank)` is the rule `rank`; the bare metric takes each method's usual rule."""
    _, found, rest = label.partition("rule=")
    return rest.partition(",")[0].rstrip(")") if found else "by method"


def _said(reading: Reading, main: Panel, panels: list[Panel]) -> str:
    first = {panel: min(ranks, key=lambda m: ranks[m][0]) for panel in panels if (ranks := _ranks(reading, panel))}
    taus = {panel: _tau(reading, main, panel) for panel in panels if panel != main}
    known = {panel: tau for panel, tau in taus.items() if math.isfinite(tau)}
    leaders = list(dict.fromkeys(first.values()))
    if len(leaders) == 1:
        told = f"<strong>{escape(leaders[0])}</strong> is first under every rule."
    else:
        parts = [
            f"<strong>{escape(leader)}</strong> under "
            + ", ".join(escape(rule_name(panel.metric)) for panel in panels if first.get(panel) == leader)
            for leader in leaders
        ]
        told = f"Who is first depends on the rule: {'; '.join(parts)}."
    if known:
        furthest = min(known, key=lambda panel: known[panel])
        told += (
            f" Furthest from the main ranking is {escape(rule_name(furthest.metric))} "
            f"(Kendall’s tau {number(known[furthest], 2)})."
        )
    return told


def _ranks(reading: Reading, panel: Panel) -> dict[str, tuple[float, float, float]]:
    return dict(reading.standings[panel].ranks)


def _tau(reading: Reading, one: Panel, other: Panel) -> float:
    mine, theirs = _ranks(reading, one), _ranks(reading, other)
    shared = sorted(set(mine) & set(theirs))
    if len(shared) < 2:
        return math.nan
    return kendall_tau([mine[m][0] for m in shared], [theirs[m][0] for m in shared])
