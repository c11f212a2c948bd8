"""The curves behind the scores: the mean over images with a bootstrap band, per method."""

from __future__ import annotations

import pandas as pd

from heatproof.report.charts import Line, small_multiples
from heatproof.report.charts import curves as draw
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold, metric_heading, section, unfolding
from heatproof.report.typeset import counted, escape
from heatproof.stats.mean_curve import mean_curve

SHOWN = 4  # metrics in full; further ones are behind a fold
LOUD = 8  # contestants in colour; with many methods the others are thin and grey


def curves(reading: Reading) -> str | None:
    """One chart per metric, data set and model that left curves behind."""
    if not len(reading.curves):
        return None
    grouped = {
        Panel(str(metric), str(dataset), str(model)): part
        for (metric, dataset, model), part in reading.curves.groupby(["metric", "dataset", "model"], observed=True)
    }
    pieces: list[tuple[str, str]] = []
    internal: list[str] = []
    drawn: dict[str, tuple[str, str]] = {}
    ranking = {panel.metric for panel, standing in reading.standings.items() if standing.ranks}
    met = dict.fromkeys([*reading.metrics, *sorted({panel.metric for panel in grouped})])
    for metric in met:
        charts = [
            _chart(reading, panel, grouped[panel])
            for panel in sorted(grouped, key=lambda one: (one.dataset, one.model))
            if panel.metric == metric
        ]
        if charts:
            drawn.setdefault(metric, charts[0])
            body = f'<div class="metric">{metric_heading(reading, metric)}{small_multiples(charts)}</div>'
            if metric in ranking:
                pieces.append((metric, body))
            else:
                internal.append(body)
    rest = (
        "Mean over images; bands are 95&nbsp;% bootstrap intervals over images. Controls are grey, each with its own "
        "dashes."
    )
    body = unfolding(pieces, SHOWN)
    if internal:
        body += fold(f"Curves that rank no method ({counted(len(internal), 'metric')})", "".join(internal))
    first = next((panel.metric for panel in reading.main if panel.metric in drawn), next(iter(drawn), ""))
    if not drawn:
        return None
    caption, picture = drawn[first]
    lead = f"What lies behind {escape(first)}: its curve, mean over {escape(caption)}."
    return section("curves", "Curves", lead, body, picture=picture, rest=rest, named="All curves")


def chart_of(reading: Reading, panel: Panel) -> str:
    """The curves of one comparison; empty where it has none."""
    found = reading.curves
    if not len(found):
        return ""
    here = (found["metric"] == panel.metric) & (found["dataset"] == panel.dataset) & (found["model"] == panel.model)
    return _chart(reading, panel, found.loc[here])[1] if here.any() else ""


def _chart(reading: Reading, panel: Panel, part: pd.DataFrame) -> tuple[str, str]:
    lines = []
    loud = set(list(reading.colours)[:LOUD])
    for method in reading.methods:
        rows = part.loc[part["method"] == method]
        summary = mean_curve(list(rows["x"]), list(rows["y"]))
        if summary is None:
            continue
        x, mean, low, high = (list(map(float, values)) for values in summary)
        control = reading.is_control(method)
        quiet = not control and method not in loud
        lines.append(Line(method, x, mean, low, high, reading.colours.get(method), control, quiet))
    where = reading.named(panel)
    x_label, y_label = reading.info.metric(panel.metric).drawn_axes
    title = f"Curves of {panel.metric}{', ' + where if where else ''}"
    drawing = draw(
        lines,
        title=title,
        x_label=x_label,
        y_label=y_label,
    )
    images = counted(int(part["image"].nunique()), "image")
    return f"{where + ' · ' if where else ''}{images}", drawing
