"""The k-series: does a method see an object matter less as more scenes carry it?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from heatproof.report.charts import Line, curves
from heatproof.report.reading import Reading
from heatproof.report.typeset import escape, number
from heatproof.stats.relative_importance import Correlation, pearson

NAME = "mcs_relative"


def series(reading: Reading, studies: list[Mapping[str, Any]]) -> str:
    """Model contrast over k against the drop of accuracy, and how closely each method follows it."""
    study = next((one for one in studies if one.get("notes", {}).get("part") == "series"), None)
    if study is None:
        return ""
    told = study["notes"]["series"]
    drops = {_k(spec): row["with_object"] - row["without_object"] for spec, row in told.items()}
    scores = contrast_by_k(reading, max(drops))
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
    rows = []
    for method, values in scores.items():
        follows = pearson([values.get(k, math.nan) for k in ks], [drops[k] for k in ks])
        known = [values[k] for k in ks if math.isfinite(values.get(k, math.nan))]
        rows.append((follows.r, method, follows, max(known) - min(known) if known else math.nan))
    rows.sort(key=lambda row: (reading.is_control(row[1]), math.isnan(row[0]), -row[0] if math.isfinite(row[0]) else 0))
    body = "".join(_row(reading, method, follows, span) for _, method, follows, span in rows)
    accuracies = "".join(
        f'<tr><td>{_k(spec)}</td><td class="num">{row["with_object"]:.3f}</td><td class="num">'
        f'{row["without_object"]:.3f}</td><td class="num">{number(drops[_k(spec)])}</td></tr>'
        for spec, row in sorted(told.items(), key=lambda item: _k(item[0]))
    )
    chart = curves(
        lines, title="Model contrast over k", x_label="scenes that carry the object", y_label="MCS; accuracy drop"
    )
    return (
        "<h3>The k-series</h3><p>One object is in every training picture of k of the ten scenes. The more scenes carry "
        "it, the less it tells, and the less accuracy should drop where it is removed. A faithful map of the object "
        "should cool down likewise; the last model is the contrast, so its score is 0 by construction. "
        f"{len(ks)} points: most differences between correlations are within their intervals.</p>{chart}"
        '<table><thead><tr><th>method</th><th class="num">Pearson r with the drop</th><th class="num">95 % interval'
        f'</th><th class="num">points</th><th class="num">range over k</th></tr></thead><tbody>{body}</tbody></table>'
        '<table><thead><tr><th>k</th><th class="num">accuracy with the object</th><th class="num">without</th>'
        f'<th class="num">drop</th></tr></thead><tbody>{accuracies}</tbody></table>'
    )


def contrast_by_k(reading: Reading, last: int) -> dict[str, dict[int, float]]:
    """method -> k -> mean score; the last k is 0."""
    named = reading.info.get("metrics", {})
    found: dict[str, dict[int, float]] = {}
    for panel in reading.panels:
        if named.get(panel.metric, {}).get("name") != NAME:
            continue
        for method, value in reading.table(panel).mean().items():
            if np.isfinite(value):
                found.setdefault(str(method), {last: 0.0})[_k(panel.model)] = float(value)
    return found


def _k(spec: str) -> int:
    number_at_end = re.search(r"(\d+)$", spec)
    return int(number_at_end[1]) if number_at_end else 0


def _row(reading: Reading, method: str, follows: Correlation, span: float) -> str:
    blind = " (blind)" if reading.is_control(method) else ""
    said = "does not vary" if math.isnan(follows.r) else number(follows.r)
    between = "–" if math.isnan(follows.low) else f"[{number(follows.low)}, {number(follows.high)}]"
    return (
        f'<tr><td>{escape(method)}{blind}</td><td class="num">{said}</td><td class="num">{between}</td>'
        f'<td class="num">{follows.n}</td><td class="num">{number(span)}</td></tr>'
    )
