"""The curves behind the scores: the mean over images with a bootstrap band, per method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.report.charts import Line, small_multiples
from heatproof.report.charts import curves as draw
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold, metric_heading, section, unfolding
from heatproof.report.typeset import counted
from heatproof.stats.bootstrap import resampled_means

POINTS = 31  # per curve: more cannot be seen at this size
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
    ranking = {panel.metric for panel, standing in reading.standings.items() if standing.ranks}
    met = dict.fromkeys([*reading.metrics, *sorted({panel.metric for panel in grouped})])
    for metric in met:
        charts = [
            _chart(reading, panel, grouped[panel])
            for panel in sorted(grouped, key=lambda one: (one.dataset, one.model))
            if panel.metric == metric
        ]
        if charts:
            body = f'<div class="metric">{metric_heading(reading, metric)}{small_multiples(charts)}</div>'
            if metric in ranking:
                pieces.append((metric, body))
            else:
                internal.append(body)
    lead = (
        "Mean over images; bands are 95&nbsp;% bootstrap intervals over images. Controls are grey, each with its own "
        "dashes."
    )
    body = unfolding(pieces, SHOWN)
    if internal:
        body += fold(f"Curves that rank no method ({counted(len(internal), 'metric')})", "".join(internal))
    return section("curves", "Curves", lead, body)


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


Floats = NDArray[np.float64]


def mean_curve(xs: Sequence[Any], ys: Sequence[Any]) -> tuple[Floats, Floats, Floats, Floats] | None:
    """x, mean, low, high over images; curves on different x are interpolated on one grid over their range."""
    pairs = [(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)) for x, y in zip(xs, ys, strict=True)]
    pairs = [(x, y) for x, y in pairs if x.size > 1 and x.shape == y.shape and np.isfinite(x).all()]
    if not pairs:
        return None
    first = pairs[0][0]
    if len(first) <= POINTS and all(np.array_equal(x, first) for x, _ in pairs):
        grid, table = first, np.stack([y for _, y in pairs])
    else:
        low, high = max(float(x.min()) for x, _ in pairs), min(float(x.max()) for x, _ in pairs)
        if low >= high:
            return None
        grid = np.linspace(low, high, POINTS)
        table = np.stack([np.interp(grid, x[np.argsort(x)], y[np.argsort(x)]) for x, y in pairs])
    table = table[np.isfinite(table).all(axis=1)]
    if not len(table):
        return None
    mean = table.mean(axis=0)
    if len(table) < 2:
        return grid, mean, mean, mean
    lower, upper = np.quantile(resampled_means(table, resamples=400), [0.025, 0.975], axis=0)
    return grid, mean, lower, upper
