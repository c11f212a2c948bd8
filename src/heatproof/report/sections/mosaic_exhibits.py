"""The mosaics with their heatmaps, and how much relevance of either sign each tile holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatproof.report.heat import heat_uri, overlay, photo_uri, shown
from heatproof.report.run_numbers import Exhibit, Panel, Reading
from heatproof.report.sections.blocks import fold
from heatproof.report.typeset import MINUS, breakable, escape, shortened

SIDE = 128
OPEN = 2  # data sets and models shown unfolded
ABREAST = 6


def tile_sums(values: NDArray[Any], grid: int) -> NDArray[np.float64]:
    """(grid, grid, 2): each tile's positive and negative relevance as shares of all; 0 for a zero map."""
    heat = np.nan_to_num(np.asarray(values, dtype=np.float64))
    height, width = heat.shape
    tile = (np.arange(height) * grid // height)[:, None] * grid + np.arange(width) * grid // width
    total = float(np.abs(heat).sum())
    sides = [np.bincount(tile.ravel(), np.maximum(sign * heat, 0).ravel(), grid**2) for sign in (1, -1)]
    shares = np.stack(sides, -1) / (total if total > 0 else 1.0)
    return np.asarray(shares.reshape(grid, grid, 2), dtype=np.float64)


def exhibits(reading: Reading, panels: list[Panel], grid: int) -> str:
    """The first mosaic of every data set and model, with each contestant's map and the sums under it."""
    kept = {(one.dataset, one.model): one for one in reversed(reading.gallery) if one.region is not None}
    places = dict.fromkeys((panel.dataset, panel.model) for panel in panels)
    body = ""
    for at, (dataset, model) in enumerate(place for place in places if place in kept):
        name, row = f"{model} on {dataset}", _row(reading, kept[dataset, model], grid)
        body += f"<h4>{escape(name)}</h4>{row}" if at < OPEN else fold(name, row)
    if not body:
        return ""
    return (
        "<h3>The mosaics</h3><p>Under each map, tile by tile: positive and negative relevance in percent of all "
        "its relevance. Tiles that show the class are outlined, and their numbers are bold.</p>" + body
    )


def _row(reading: Reading, exhibit: Exhibit, grid: int) -> str:
    assert exhibit.region is not None
    original = photo_uri(shown(exhibit.picture, exhibit.region, SIDE))
    cells = [
        f'<figure class="original"><img src="{original}" alt="The mosaic {escape(exhibit.image)}" '
        f'width="{SIDE}">'
        f"<figcaption><b>{breakable(shortened(exhibit.target, 40))}</b><span>{escape(exhibit.image)}</span>"
        "</figcaption></figure>"
    ]
    inside = tile_sums(exhibit.region.astype(np.float64), grid)[..., 0] > 0
    for method in reading.methods:
        if method not in exhibit.maps or reading.is_control(method):
            continue
        source = heat_uri(overlay(exhibit.picture, exhibit.maps[method], exhibit.region, SIDE))
        cells.append(
            f'<figure><img src="{source}" alt="Heatmap of {escape(method)}" width="{SIDE}">'
            f'<figcaption title="{escape(method)}"><b>{breakable(shortened(method, 40))}</b></figcaption>'
            f"{_sums(tile_sums(exhibit.maps[method], grid), inside)}</figure>"
        )
    columns = math.ceil(len(cells) / math.ceil(len(cells) / ABREAST))  # rows of equal length
    return f'<div class="exhibit" style="--columns:{columns}">{"".join(cells)}</div>'


def _sums(shares: NDArray[np.float64], inside: NDArray[np.bool_]) -> str:
    rows = []
    for line, marks in zip(shares, inside, strict=True):
        cells = []
        for (positive, negative), target in zip(line, marks, strict=True):
            text = f"+{100 * positive:.0f}&nbsp;{MINUS}{100 * negative:.0f}"
            cells.append(f'<td class="num">{f"<b>{text}</b>" if target else text}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table class="tiles"><tbody>{"".join(rows)}</tbody></table>'
