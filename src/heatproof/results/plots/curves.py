"""The figure of curves: the mean over pictures with its band, a line for each method."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heatproof.errors import BadInput
from heatproof.results.best_groups import main_metrics
from heatproof.results.method_names import short_names
from heatproof.results.plots.style import COLUMN, DASHES, GREY, PAGE, PALETTE, chosen, colours, sheet, style, titles
from heatproof.results.results import Results
from heatproof.stats.mean_curve import mean_curve

ACROSS = 3
HEIGHT = 2.0  # inches of a panel
LETTER = 0.052  # inches, about, in the legend


def curves(
    results: Results,
    metrics: Sequence[str] = (),
    *,
    methods: Sequence[str] = (),
    model: str | None = None,
    dataset: str | None = None,
) -> Figure:
    """A panel for each metric, data set and model; controls are grey and dashed."""
    every = results.curves
    for metric in metrics:
        results.rows(metric, model=model, dataset=dataset)  # an unknown name is named
    panels = _panels(every, metrics or main_metrics(results), model, dataset)
    if not panels and not metrics:
        panels = _panels(every, list(dict.fromkeys(every["metric"])) if len(every) else [], model, dataset)
    if not panels:
        raise BadInput(f"there are no curves of {', '.join(metrics) or 'any metric'} in these results")
    there = list(dict.fromkeys(method for part in panels.values() for method in part["method"]))
    there.sort(key=results.is_control)
    shown = chosen(methods, there)
    across = min(ACROSS, len(panels))
    down = math.ceil(len(panels) / across)
    with style():
        width = COLUMN if across == 1 else PAGE
        beside = max(1, int(width / (0.5 + LETTER * max(map(len, short_names(shown).values())))))
        rows = math.ceil(len(shown) / beside)
        figure = sheet(width, HEIGHT * down + 0.14 * rows + 0.15)
        drawn = figure.subplots(down, across, squeeze=False)
        where = titles([(dataset, model) for _, dataset, model in panels])
        for at, ((metric, d, m), part) in enumerate(panels.items()):
            _panel(drawn[at // across][at % across], results, metric, part, shown, where[d, m])
        for at in range(len(panels), down * across):
            drawn[at // across][at % across].set_visible(False)
        lines, words = drawn[0][0].get_legend_handles_labels()
        figure.legend(lines, words, loc="outside lower center", ncols=min(beside, len(words)), handlelength=2.6)
    return figure


def _panels(
    every: pd.DataFrame, metrics: Sequence[str], model: str | None, dataset: str | None
) -> dict[tuple[str, str, str], pd.DataFrame]:
    if not len(every):
        return {}
    found = {}
    for (metric, d, m), part in every.groupby(["metric", "dataset", "model"], sort=False, observed=True):
        if metric in metrics and (model is None or m == model) and (dataset is None or d == dataset):
            found[str(metric), str(d), str(m)] = part
    return {key: found[key] for key in sorted(found, key=lambda key: metrics.index(key[0]))}


def _panel(axes: Axes, results: Results, metric: str, part: pd.DataFrame, methods: Sequence[str], where: str) -> None:
    controls = [method for method in methods if results.is_control(method)]
    colour = colours(methods, controls)
    names = short_names(methods)
    for method in methods:
        rows = part.loc[part["method"] == method]
        summary = mean_curve(list(rows["x"]), list(rows["y"]))
        if summary is None:
            continue
        x, mean, low, high = summary
        if method in controls:
            dash = DASHES[1 + controls.index(method) % (len(DASHES) - 1)]
            axes.plot(x, mean, color=GREY, linestyle=dash, linewidth=1.0, label=names[method])
            continue
        place = list(colour).index(method)
        dash = DASHES[place // len(PALETTE) % len(DASHES)]
        axes.fill_between(x, low, high, color=colour[method], alpha=0.13, linewidth=0)
        axes.plot(x, mean, color=colour[method], linestyle=dash, label=names[method])
    x_label, y_label = results.info.metric(metric).drawn_axes
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    pictures = part["image"].nunique()
    axes.set_title(" · ".join([metric, *([where] if where else []), f"n = {pictures}"]), loc="left")
    axes.margins(x=0)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
