"""The figure of heatmaps: pictures × methods from the gallery of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from heatproof.errors import BadInput, UnknownName
from heatproof.report.heat import COLD, WARM, overlay, shown
from heatproof.results.gallery import Picture
from heatproof.results.method_names import short_names
from heatproof.results.plots.style import COLUMN, GREY, PAGE, PaperFigure, chosen, style
from heatproof.results.results import Results

SIDE = 320  # pixels of a heatmap: some 300 an inch
LEFT, GAP, FOOT, LEGEND = 0.27, 0.025, 0.33, 2.0  # inches
LETTER = 0.052  # inches, about


def heatmaps(
    results: Results,
    *,
    pictures: int | Sequence[str] = 4,
    methods: Sequence[str] = (),
    model: str | None = None,
    dataset: str | None = None,
) -> Figure:
    """A row for each picture with the class that is explained, the region outlined, a column for each method."""
    rows = _rows(results, pictures, model, dataset)
    there = list(dict.fromkeys(method for row in rows for method in row.maps))
    columns = chosen(methods, [*(m for m in there if not results.is_control(m)), *filter(results.is_control, there)])
    return grid(rows, columns, frozenset(filter(results.is_control, columns)))


def grid(rows: Sequence[Picture], methods: Sequence[str], controls: Collection[str] = ()) -> Figure:
    """A row for each picture, a column for each method; controls in italics."""
    names = short_names(methods)
    with style():
        figure, panels = _laid_out(len(rows), [names[method] for method in methods])
        for at, row in enumerate(rows):
            _picture(panels[at][0], row)
            for to, method in enumerate(methods, start=1):
                _heatmap(panels[at][to], row, method)
        for axes, method in zip(panels[0][1:], methods, strict=True):
            if method in controls:
                axes.title.set(style="italic", color=GREY)
    return figure


def _laid_out(down: int, names: Sequence[str]) -> tuple[PaperFigure, list[list[Axes]]]:
    """The figure with its panels at fixed places, so that all are of one size whatever their names are."""
    width = COLUMN if len(names) < 4 else PAGE
    across = 1 + len(names)
    slanted = any(LETTER * len(name) > (width - LEFT) / across for name in names)
    longest = LETTER * max((len(name) for name in names), default=0)
    head, end = (0.1 + 0.57 * longest, 0.82 * LETTER * len(names[-1])) if slanted else (0.16, 0.0)
    side = (width - LEFT - max(0.0, end - 0.3)) / across
    high = head + down * side + FOOT
    figure = PaperFigure(figsize=(width, high), dpi=150)
    panels = [
        [
            figure.add_axes(
                (
                    (LEFT + to * side) / width,
                    (high - head - (at + 1) * side + GAP) / high,
                    (side - GAP) / width,
                    (side - GAP) / high,
                )
            )
            for to in range(across)
        ]
        for at in range(down)
    ]
    for axes, name in zip(panels[0][1:], names, strict=True):
        title = axes.set_title(name, fontsize=6.5, pad=3)
        if slanted:
            title.set(rotation=35, ha="left", rotation_mode="anchor")
    _legend(figure.add_axes((0.5 - LEGEND / 2 / width, 0.2 / high, LEGEND / width, 0.05 / high)))
    return figure, panels


def _rows(results: Results, wanted: int | Sequence[str], model: str | None, dataset: str | None) -> list[Picture]:
    gallery = [
        one
        for one in results.gallery
        if (model is None or one.model == model) and (dataset is None or one.dataset == dataset)
    ]
    if not gallery:
        raise BadInput("these results hold no heatmaps to draw: a run keeps those of its first pictures")
    if isinstance(wanted, int):
        return gallery[:wanted]
    by_id = {one.image: one for one in gallery}
    for name in wanted:
        if name not in by_id:
            raise UnknownName.among("picture in the gallery", name, by_id)
    return [by_id[name] for name in wanted]


def _picture(axes: Axes, row: Picture) -> None:
    axes.imshow(np.asarray(shown(row.picture, row.region, SIDE)))
    _bare(axes)
    most = int(axes.get_position().height * axes.figure.bbox.height / axes.figure.dpi / LETTER)  # type: ignore[union-attr]
    lines = textwrap.wrap(row.target, max(most, 6), max_lines=2, placeholder="…")
    axes.set_ylabel("\n".join(lines), fontsize=6.5, labelpad=2, linespacing=1.0)


def _heatmap(axes: Axes, row: Picture, method: str) -> None:
    _bare(axes)
    values = row.maps.get(method)
    if values is None:
        axes.text(0.5, 0.5, "no map", transform=axes.transAxes, ha="center", va="center", color=GREY, fontsize=6)
        return
    axes.imshow(np.asarray(overlay(row.picture, values, row.region, SIDE)))
    if not np.any(values):
        axes.text(0.5, 0.04, "all zero", transform=axes.transAxes, ha="center", fontsize=6)


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _legend(axes: Axes) -> None:
    """The colours: from evidence against the class over none to evidence for it."""
    stops = [*(tuple(stop / 255) for stop in COLD[::-1]), (0.94, 0.94, 0.94), *(tuple(stop / 255) for stop in WARM)]
    colours = LinearSegmentedColormap.from_list("heat", stops)
    axes.imshow(np.linspace(0, 1, 256)[None], cmap=colours, aspect="auto", extent=(-1, 1, 0, 1))
    axes.set_yticks([])
    axes.set_xticks([-1, 0, 1], ["against the class", "no evidence", "for the class"], fontsize=6)
    axes.tick_params(length=0, pad=1.5)
    for spine in axes.spines.values():
        spine.set_visible(False)
