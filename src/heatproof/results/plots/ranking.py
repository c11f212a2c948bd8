"""The figure of a ranking: means with their intervals, the best group filled."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heatproof.results.best_groups import BestGroups, Block, Column, best_groups
from heatproof.results.method_names import short_names
from heatproof.results.plots.style import COLUMN, GREY, INK, PAGE, PALETTE, chosen, sheet, style, titles
from heatproof.results.results import Results
from heatproof.stats.against_blind import MARKS

ACROSS = 4  # panels side by side
ROW = 0.155  # inches for a method
LETTER = 0.05  # inches, about, of the legend


def ranking(
    results: Results,
    metrics: Sequence[str] = (),
    *,
    methods: Sequence[str] = (),
    model: str | None = None,
    dataset: str | None = None,
) -> Figure:
    """A panel for each metric, data set and model; all share the order of methods."""
    found = best_groups(results, metrics, model=model, dataset=dataset)
    shown = chosen(methods, list(dict.fromkeys(method for block in found.blocks for method in block.cells)))
    across = min(ACROSS, len(found.columns))
    down = math.ceil(len(found.columns) / across)
    with style():
        height = len(found.blocks) * down * (ROW * len(shown) + 0.55) + 0.3
        figure = sheet(COLUMN if across == 1 else PAGE, height)
        panels = figure.subplots(len(found.blocks) * down, across, squeeze=False)
        for row, block in enumerate(found.blocks):
            for at in range(down * across):
                axes = panels[row * down + at // across][at % across]
                if at < len(found.columns):
                    _panel(axes, block, found.columns[at], shown, at % across == 0)
                    axes.set_title(_title(found, block, at), loc="left")
                else:
                    axes.set_visible(False)
        letters = int(figure.get_figwidth() / LETTER)
        figure.supxlabel(textwrap.fill(_legend(found, shown), letters), fontsize=6, color=GREY)
    return figure


def _title(found: BestGroups, block: Block, at: int) -> str:
    where = titles([(one.dataset, one.model) for one in found.blocks])[block.dataset, block.model]
    return where if at == 0 else ""


def _panel(axes: Axes, block: Block, column: Column, methods: Sequence[str], named: bool) -> None:
    names = short_names(list(block.cells))
    places = range(len(methods))
    for place, method in zip(places, methods, strict=True):
        cell = block.cells.get(method, {}).get(column.metric)
        if cell is None or math.isnan(cell.mean):
            axes.text(
                0.02, place, "no score", transform=axes.get_yaxis_transform(), va="center", color=GREY, fontsize=6
            )
            continue
        control = method in block.controls
        colour = GREY if control else PALETTE[0] if cell.best else INK
        if not math.isnan(cell.low):
            axes.plot([cell.low, cell.high], [place, place], color=colour, linewidth=1.1, solid_capstyle="butt")
        filled = colour if cell.best else "white"
        axes.plot(cell.mean, place, "o", markersize=4, color=colour, markerfacecolor=filled, markeredgewidth=0.9)
        if mark := MARKS.get(cell.against_blind, ""):  # type: ignore[call-overload]
            axes.annotate(
                mark, (cell.mean, place), xytext=(0, 2.2), textcoords="offset points", ha="center", fontsize=6
            )
    axes.set_xlabel(f"{column.metric} {column.arrow}")
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.set_yticks(places, [names.get(method, method) if named else "" for method in methods])
    axes.tick_params(axis="y", length=0)
    for label, method in zip(axes.get_yticklabels(), methods, strict=True):
        if method in block.controls:
            label.set(style="italic", color=GREY)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(5, min_n_ticks=3))


def _legend(found: BestGroups, methods: Sequence[str]) -> str:
    met = {
        cell.against_blind
        for block in found.blocks
        for method, row in block.cells.items()
        if method in methods
        for cell in row.values()
    }
    marks = {"beaten": "‡ a blind control beats it", "level": "° not distinguished from some blind control"}
    parts = ["filled: the best group by the adjusted tests", "bars: 95 % intervals"]
    return "; ".join([*parts, *(words for standing, words in marks.items() if standing in met)])
