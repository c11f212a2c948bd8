"""A matrix in colour: diverging around zero, or sequential from zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heatproof.report.charts.svg import CHARACTER, apart, coordinate, drawing, element, group, text
from heatproof.report.typeset import MINUS, NOISE, escape, shortened

Scale = Literal["diverging", "sequential"]
STEPS = 5  # shades on each side of zero
SMALL = 16  # up to this many rows, each cell has its number and tooltip; beyond, cells of a shade share a path


def shade(value: float, scale: Scale, limit: float, least: int = 0) -> str:
    """The CSS class of a value: `p1`…`p5` above zero, `n1`…`n5` below, `z` at zero, `x` for none.

    A value other than zero has at least the shade `least`.
    """
    if math.isnan(value):
        return "x"
    step = min(STEPS, max(least if value else 0, math.floor(abs(value) / limit * STEPS + 0.5)))
    return "z" if step == 0 else f"{'n' if value < 0 and scale == 'diverging' else 'p'}{step}"


def short(value: float) -> str:
    """Two decimals without the leading zero, as fits a small cell: .94, −.50; 1.0 and 0 are exact."""
    size = abs(value)
    if size < NOISE:
        return "0"
    sign = MINUS if value < 0 else ""
    if abs(size - 1) < NOISE:
        return f"{sign}1.0"
    return sign + f"{min(size, 0.99) if size < 1 else size:.2f}".removeprefix("0")


def heatmap(
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    scale: Scale = "diverging",
    limit: float = 1.0,
    least: int = 0,
    texts: Sequence[Sequence[str]] | None = None,
    notes: Sequence[Sequence[str]] | None = None,
) -> str:
    """Cells coloured by value, NaN left open. `texts` replaces the printed numbers, `notes` the tooltips.

    `least` is the least shade of a value that is not zero: 1 where zero alone means that there is nothing.
    """
    small = max(len(rows), len(columns)) <= SMALL
    cell = 32.0 if max(len(rows), len(columns)) <= 10 else 27.0 if small else 14.0
    most = apart([*dict.fromkeys([*rows, *columns])], 20)
    left = max((len(shortened(row, most)) for row in rows), default=0) * CHARACTER + 12
    # Column names stand at 45 degrees: they need the sine of their length above, the cosine to the right.
    slant = max((len(shortened(column, most)) for column in columns), default=0) * CHARACTER * 0.72 + 12
    reach = [cell * (at + 0.5) + len(shortened(name, most)) * CHARACTER * 0.72 for at, name in enumerate(columns)]
    width, height = left + max([cell * len(columns), *reach]) + 4, slant + cell * len(rows) + 4
    parts = [
        text(left - 8, slant + cell * (at + 0.5) + 4, shortened(row, most), "label", "end", tooltip=row)
        for at, row in enumerate(rows)
    ]
    for at, column in enumerate(columns):
        x, y = left + cell * (at + 0.5), slant - 6
        turn = f"rotate(-45 {coordinate(x)} {coordinate(y)})"
        content = escape(shortened(column, most)) + element("title", escape(column))
        parts.append(element("text", content, x=x, y=y, transform=turn, class_="label"))
    shades = [[shade(float(value), scale, limit, least) for value in row] for row in values]
    if small:
        parts.append(_cells(values, shades, rows, columns, texts, notes, left, slant, cell))
    else:
        parts.append(_paths(shades, left, slant, cell))
    return drawing(width, height, title, "".join(parts), "chart matrix" if small else "chart matrix large")


def _cells(
    values: NDArray[np.float64],
    shades: list[list[str]],
    rows: Sequence[str],
    columns: Sequence[str],
    texts: Sequence[Sequence[str]] | None,
    notes: Sequence[Sequence[str]] | None,
    left: float,
    top: float,
    cell: float,
) -> str:
    parts = []
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            value = float(values[i, j])
            words = texts[i][j] if texts is not None else "" if math.isnan(value) else short(value)
            note = notes[i][j] if notes is not None else f"{row} × {column}: {words}"
            x, y = left + cell * j, top + cell * i
            box = element("rect", x=x + 1, y=y + 1, width=cell - 2, height=cell - 2, rx=2, class_="cell")
            inside = text(x + cell / 2, y + cell / 2 + 3.6, words, "cell-text", "middle") if words else ""
            parts.append(group(box + inside, f"h{shades[i][j]}", note or None))
    return "".join(parts)


def _paths(shades: list[list[str]], left: float, top: float, cell: float) -> str:
    drawn: dict[str, list[str]] = {}
    side = coordinate(cell - 1)
    for i, row in enumerate(shades):
        for j, name in enumerate(row):
            corner = f"{coordinate(round(left) + cell * j)} {coordinate(round(top) + cell * i)}"
            square = f"M{corner}h{side}v{side}h-{side}z"
            drawn.setdefault(name, []).append(square)
    return "".join(
        group(element("path", d="".join(squares), class_="cell"), f"h{name}") for name, squares in sorted(drawn.items())
    )
