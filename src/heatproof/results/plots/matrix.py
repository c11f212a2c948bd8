"""The figure of all answers: methods × metrics, coloured by what each beats and what beats it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from heatproof.results.best_groups import Block, Column, best_groups, decimals
from heatproof.results.method_names import short_names
from heatproof.results.plots.style import COLUMN, GREY, INK, PAGE, chosen, sheet, style, titles
from heatproof.results.results import Results
from heatproof.stats.against_blind import MARKS

# Orange for methods that beat others, blue for those that are beaten; both ends are dark, so that print in grey reads.
_COLOURS = LinearSegmentedColormap.from_list(
    "beats", ["#14548d", "#6ea6d6", "#d9e8f5", "#f6f3ee", "#fde3cc", "#ee9152", "#8f3405"]
)
ROW = 0.19
CELL = 0.62  # inches
LETTER = 0.056


def matrix(
    results: Results,
    metrics: Sequence[str] = (),
    *,
    methods: Sequence[str] = (),
    model: str | None = None,
    dataset: str | None = None,
) -> Figure:
    """A panel for each data set and model. Numbers are means, bold in the best group; grey rows are controls."""
    found = best_groups(results, metrics, model=model, dataset=dataset)
    shown = chosen(methods, list(dict.fromkeys(method for block in found.blocks for method in block.cells)))
    where = titles([(block.dataset, block.model) for block in found.blocks])
    with style():
        wide = 1.3 + CELL * len(found.columns)
        longest = max(len(column.metric) for column in found.columns) + 2
        slanted = longest * LETTER > (PAGE if wide > COLUMN else COLUMN) / (2 + len(found.columns))
        slant = 0.6 * LETTER * longest + 0.2 if slanted else 0.25
        figure = sheet(
            COLUMN if wide <= COLUMN else max(PAGE, wide), len(found.blocks) * (ROW * len(shown) + slant) + 0.55
        )
        panels = figure.subplots(len(found.blocks), 1, squeeze=False)
        for (axes,), block in zip(panels, found.blocks, strict=True):
            _panel(axes, block, found.columns, shown, slanted)
            axes.set_ylabel(where[block.dataset, block.model])
        scale = ScalarMappable(Normalize(-1, 1), _COLOURS)
        bar = figure.colorbar(scale, ax=panels.ravel().tolist(), location="bottom", aspect=40, pad=0.02, shrink=0.8)
        bar.set_ticks([-1, 0, 1], labels=["loses to all", "", "beats all"])
        bar.outline.set_visible(False)  # type: ignore[operator]
    return figure


def _panel(axes: Axes, block: Block, columns: Sequence[Column], methods: Sequence[str], slanted: bool) -> None:
    names = short_names(list(block.cells))
    rivals = max(1, len(block.contestants) - 1)
    values = np.full((len(methods), len(columns)), np.nan)
    digits = {
        column.metric: min(
            3, decimals([row[column.metric].mean for row in block.cells.values() if column.metric in row])
        )
        for column in columns
    }
    for at, method in enumerate(methods):
        for to, column in enumerate(columns):
            cell = block.cells.get(method, {}).get(column.metric)
            if cell is None or math.isnan(cell.mean):
                axes.text(to, at, "–", ha="center", va="center", color=GREY, fontsize=6)
                continue
            control = method in block.controls
            if not control:
                values[at, to] = (cell.wins - cell.losses) / rivals
            strong = abs(values[at, to]) > 0.7
            mark = MARKS.get(cell.against_blind, "")  # type: ignore[call-overload]
            axes.text(
                to,
                at,
                f"{cell.mean:.{digits[column.metric]}f}{mark}".replace("-", "\N{MINUS SIGN}"),
                ha="center",
                va="center",
                fontsize=6,
                color=GREY if control else "white" if strong else INK,
                fontweight="bold" if cell.best else "normal",
            )
    axes.imshow(np.ma.masked_invalid(values), cmap=_COLOURS, vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), [f"{column.metric} {column.arrow}" for column in columns])
    axes.set_yticks(range(len(methods)), [names.get(method, method) for method in methods])
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(methods) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="both", length=0)
    axes.tick_params(axis="x", labeltop=True, labelbottom=False)
    for label in axes.get_xticklabels() if slanted else ():
        label.set(rotation=35, ha="left", rotation_mode="anchor")
    for label, method in zip(axes.get_yticklabels(), methods, strict=True):
        if method in block.controls:
            label.set(style="italic", color=GREY)
    for spine in axes.spines.values():
        spine.set_visible(False)
