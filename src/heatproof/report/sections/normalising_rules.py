"""The same maps normalised by other rules: the choice that AUC-IoU leaves open."""

from __future__ import annotations

import math
from collections.abc import Mapping

from heatproof.report.charts import Ranks, bumps, small_multiples
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.typeset import escape, listed, number
from heatproof.results.run_info import MetricInfo, unsigned
from heatproof.stats.ranks import kendall_tau

# What the rules mean, in the order in which the page lists them.
WORDS = {
    "abs_p99": "magnitudes up to their 99th percentile",
    "abs_min_max": "magnitudes from minimum to maximum",
    "positive": "the positive part over its maximum",
    "positive_p99": "the positive part up to its 99th percentile",
    "min_max": "signed values from minimum to maximum",
    "rank": "ranks",
}
ONE_SIGN = (
    "Maps that are never negative (magnitudes of gradients, the positive part of a CAM, a "
    "mask) have lost their sign before any rule applies. For them the six rules come down to about three: up to a "
    "percentile, up to the maximum, by rank; signed, positive and absolute values differ by the map’s minimum at most. "
    "This holds here for {methods}."
)


def normalising_rules(reading: Reading, main: Panel, rules: Mapping[str, str] | None = None) -> str | None:
    """Ranks under every rule side by side, and how far the furthest is from the main ranking."""
    panels = [
        panel
        for panel in reading.panels
        if (panel.dataset, panel.model) == (main.dataset, main.model)
        and reading.info.metric(panel.metric).name == "auc_iou"
        and len(reading.standings[panel].ranks) > 1
    ]
    if main not in panels or len(panels) < 2:
        return None
    ranks = {panel: reading.standings[panel].ranks for panel in panels}
    methods = [m for m in reading.methods if any(m in ranks[panel] for panel in panels)]
    lines = [
        Ranks(m, [ranks[panel].get(m, (math.nan,) * 3)[0] for panel in panels], reading.colours.get(m)) for m in methods
    ]
    names = [rule_name(reading.info.metric(panel.metric)) for panel in panels]
    chart = bumps(lines, names, title="Ranks by AUC-IoU under each normalising rule")
    figure = small_multiples([("Rank by AUC-IoU under each normalising rule, 1 at the top", chart)])
    note = "".join(
        f"<p>{part}</p>" for part in (_applied(reading, main, rules or {}), _one_sign(reading, methods)) if part
    )
    return f"<h4>By another normalising rule</h4><p>{_summary(reading, main, panels)}</p>{note}{figure}"


def _applied(reading: Reading, main: Panel, rules: Mapping[str, str]) -> str:
    """Which rule the main ranking took for which method, as the run stored it."""
    parts = []
    taken = {m: rules.get(reading.info.method(m).label or m) for m in reading.methods if not reading.is_control(m)}
    for rule, words in WORDS.items():
        whose = [method for method, its in taken.items() if its == rule]
        if whose:
            parts.append(f"{words} (<code>{rule}</code>) for {escape(listed(whose))}")
    if not parts:
        return ""
    own = f" A user-defined method is treated like a gradient map: {WORDS['abs_p99']}."
    by_method = rule_name(reading.info.metric(main.metric)) == "by method"
    return f"The main ranking normalises by {'; '.join(parts)}.{own if by_method else ''}"


def _one_sign(reading: Reading, methods: list[str]) -> str:
    magnitudes = unsigned(reading.info, [m for m in methods if not reading.is_control(m)])
    return ONE_SIGN.format(methods=escape(listed(magnitudes))) if magnitudes else ""


def rule_name(metric: MetricInfo) -> str:
    """The rule by which a metric normalises maps; by default each method's own."""
    rule = str(metric.fields.get("rule", "by_method"))
    return "by method" if rule == "by_method" else rule


def _summary(reading: Reading, main: Panel, panels: list[Panel]) -> str:
    first = {panel: min(ranks, key=lambda m: ranks[m][0]) for panel in panels if (ranks := _ranks(reading, panel))}
    taus = {panel: _tau(reading, main, panel) for panel in panels if panel != main}
    known = {panel: tau for panel, tau in taus.items() if math.isfinite(tau)}
    leaders = list(dict.fromkeys(first.values()))
    if len(leaders) == 1:
        text = f"<strong>{escape(leaders[0])}</strong> is first under every rule."
    else:
        parts = [
            f"<strong>{escape(leader)}</strong> under "
            + ", ".join(
                escape(rule_name(reading.info.metric(panel.metric))) for panel in panels if first.get(panel) == leader
            )
            for leader in leaders
        ]
        text = f"Who is first depends on the rule: {'; '.join(parts)}."
    if known:
        furthest = min(known, key=lambda panel: known[panel])
        text += (
            f" Furthest from the main ranking is {escape(rule_name(reading.info.metric(furthest.metric)))} "
            f"(Kendall’s tau {number(known[furthest], 2)})."
        )
    return text


def _ranks(reading: Reading, panel: Panel) -> dict[str, tuple[float, float, float]]:
    return dict(reading.standings[panel].ranks)


def _tau(reading: Reading, one: Panel, other: Panel) -> float:
    mine, theirs = _ranks(reading, one), _ranks(reading, other)
    shared = sorted(set(mine) & set(theirs))
    if len(shared) < 2:
        return math.nan
    return kendall_tau([mine[m][0] for m in shared], [theirs[m][0] for m in shared])
