"""The k-series: does a method see an object matter less as more scenes carry it?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from heatproof.report.charts import Line, curves, small_multiples
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import table
from heatproof.report.typeset import MISSING, escape, listed, number
from heatproof.results.protocol_notes import RelativeImportanceNotes
from heatproof.stats.relative_importance import Correlation, pearson


def series(reading: Reading, notes: list[RelativeImportanceNotes]) -> str:
    """Model contrast over k against the drop of accuracy, and how closely each method follows it."""
    noted = next((one for one in notes if one.part == "series"), None)
    if noted is None or not noted.series:
        return ""
    ks_of = {spec: point.k for spec, point in noted.series.items()}
    drops = {ks_of[spec]: point.drop for spec, point in noted.series.items()}
    regions = {label: one.region for label, one in noted.metrics.items()}
    scores, moved = (
        contrast_by_k(reading, ks_of, [label for label in regions if regions[label] == region])
        for region in ("object", "moved")
    )
    if not scores:
        return ""
    ks = sorted(drops)
    lines = [
        Line(
            method,
            ks,
            [values.get(k, math.nan) for k in ks],
            colour=reading.colours.get(method),
            control=reading.is_control(method),
        )
        for method, values in scores.items()
    ]
    lines.append(Line("accuracy drop", ks, [drops[k] for k in ks], colour=None))
    rows = [_followed(method, scores, moved, drops) for method in scores]
    rows.sort(key=lambda row: (reading.is_control(row.method), _last_if_unknown(row.own.r)))
    accuracies = [
        [str(k), _shown(noted.series[spec].with_object), _shown(noted.series[spec].without_object), drops[k]]
        for spec, k in sorted(ks_of.items(), key=lambda item: item[1])
    ]
    chart = curves(
        lines, title="Model contrast over k", x_label="scenes that carry the object", y_label="MCS; accuracy drop"
    )
    head = ("method", "Pearson r with the drop", "95 % interval", "points", "r of a moved region", "range over k")
    followed = table(head, [_row(reading, row) for row in rows], control=reading.is_control)
    return (
        "<h3>The k-series</h3><p>One object is in every training picture of k of the ten scenes. The more scenes carry "
        "it, the less it tells, and the less accuracy should drop where it is removed. A faithful map of the object "
        "should cool down likewise; the last model is the contrast, so its score is 0 by construction. "
        f"{len(ks)} points: most differences between correlations are within their intervals.</p>{_uneven(drops)}"
        f"{small_multiples([('', chart)])}{followed}{_holes(scores, ks)}"
        f"{table(('k', 'accuracy with the object', 'without', 'drop'), accuracies)}"
    )


def _shown(accuracy: float | None) -> str:
    return MISSING if accuracy is None or math.isnan(accuracy) else f"{accuracy:.3f}"


def _uneven(drops: dict[int, float]) -> str:
    """A warning where one step makes up most of the fall: then a correlation says little more than a comparison."""
    ks = sorted(drops)
    falls = {(a, b): drops[a] - drops[b] for a, b in pairwise(ks)}
    span = max(drops.values()) - min(drops.values())
    if not falls or span <= 0:
        return ""
    (a, b), fall = max(falls.items(), key=lambda item: item[1])
    if fall < 0.5 * span:
        return ""
    return (
        f'<p class="warning"><strong>The fall is not gradual here.</strong> From k = {a} to {b} the drop goes from '
        f"{number(drops[a])} to {number(drops[b])}, {fall / span:.0%} of its whole range: the correlations below rest "
        "on that one step, and their intervals, which take the points as spread out, are too narrow.</p>"
    )


def _holes(scores: dict[str, dict[int, float]], ks: list[int]) -> str:
    lacking = {method: [str(k) for k in ks if k not in values] for method, values in scores.items()}
    holes = [f"{escape(method)} at k = {', '.join(where)}" for method, where in lacking.items() if where]
    return f'<p class="note">No score of {listed(holes)}; the section on missing numbers says why.</p>' if holes else ""


class Followed(NamedTuple):
    """How a method's series goes with the drop of accuracy."""

    method: str
    own: Correlation
    moved: Correlation  # the same for the heat of a moved region: what is not about the object
    span: float


def _followed(
    method: str, scores: dict[str, dict[int, float]], moved: dict[str, dict[int, float]], drops: dict[int, float]
) -> Followed:
    ks = sorted(drops)
    dropped = [drops[k] for k in ks]
    own, other = ([of.get(method, {}).get(k, math.nan) for k in ks] for of in (scores, moved))
    known = [value for value in own if math.isfinite(value)]
    span = max(known) - min(known) if known else math.nan
    return Followed(method, pearson(own, dropped), pearson(other, dropped), span)


def contrast_by_k(reading: Reading, ks: Mapping[str, int], labels: Sequence[str]) -> dict[str, dict[int, float]]:
    """method -> k -> mean score by the metrics of these labels; the last k is 0."""
    found: dict[str, dict[int, float]] = {}
    for panel in (Panel(label, *setting) for label in labels for setting in reading.settings):
        if panel.model not in ks or not reading.has(panel):
            continue
        k = ks[panel.model]
        for method, value in reading.table(panel).mean().items():
            if np.isfinite(value):
                found.setdefault(str(method), {max(ks.values()): 0.0})[k] = float(value)
    return found


def _last_if_unknown(r: float) -> float:
    return math.inf if math.isnan(r) else -r


def _row(reading: Reading, row: Followed) -> list[Any]:
    own = row.own
    between = MISSING if math.isnan(own.low) else f"[{number(own.low)}, {number(own.high)}]"
    varies = "does not vary" if math.isnan(own.r) else own.r
    return [row.method, varies, between, str(own.n), row.moved.r, row.span]
