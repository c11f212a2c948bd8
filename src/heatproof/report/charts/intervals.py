"""A ranking with its uncertainty: one dot per method and the interval of its score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heatproof.report.charts.axis import spanning, tick_labels
from heatproof.report.charts.svg import (
    CHARACTER,
    colour_class,
    drawing,
    element,
    group,
    label_width,
    letters,
    line,
    text,
)
from heatproof.report.typeset import number, shortened

WIDTH, ROW, TOP, BOTTOM = 400.0, 23.0, 8.0, 26.0
USUAL = 22  # characters of a label; for longer ones the drawing grows


@dataclass(frozen=True)
class Estimate:
    """A score with its interval. `rank` is shown as given ("1", "2–3"); `colour` None is grey."""

    label: str
    value: float
    low: float
    high: float
    rank: str = ""
    colour: int | None = None
    control: bool = False
    note: str = ""


def interval_ranking(
    estimates: Sequence[Estimate],
    *,
    title: str,
    higher_is_better: bool = True,
    reference: float | None = None,
    within: Iterable[float] = (),
) -> str:
    """Dots with intervals, best at the top; methods without a score come last, with the reason.

    `reference` draws a vertical line (chance, zero). Controls are grey, hollow and in italics. `within` are further
    numbers that the axis covers, so that charts to be compared share one axis.
    """
    rows = sorted(
        estimates,
        key=lambda estimate: (
            math.isnan(estimate.value),
            -estimate.value if higher_is_better else estimate.value,
            estimate.label,
        ),
    )
    widest = max((len(row.rank) for row in rows), default=0)
    rank_width = max(28.0, 6.2 * widest + 10) if widest else 0.0
    labels = [row.label for row in rows]
    most = letters(labels, USUAL)
    width = WIDTH + (most - USUAL) * CHARACTER
    left = rank_width + label_width(labels, most) + 8
    right = width - 46
    shown = [*within, *(number for row in rows for number in (row.value, row.low, row.high))]
    axis = spanning([*shown, reference] if reference is not None else shown, left, right)
    height = TOP + ROW * len(rows) + BOTTOM
    floor = height - BOTTOM
    ticks = axis.ticks(4)
    parts = [line(axis.at(tick), TOP, axis.at(tick), floor, "grid") for tick in ticks]
    parts += [
        text(axis.at(tick), floor + 16, words, "tick", "middle")
        for tick, words in zip(ticks, tick_labels(ticks), strict=True)
    ]
    if reference is not None:
        parts.append(line(axis.at(reference), TOP, axis.at(reference), floor, "reference"))
    for place, row in enumerate(rows):
        y = TOP + ROW * (place + 0.5)
        cells = text(rank_width + 2, y + 4, shortened(row.label, most), "label control" if row.control else "label")
        if row.rank:
            cells = text(rank_width - 8, y + 4, row.rank, "rank", "end") + cells
        if math.isnan(row.value):
            cells += text(left, y + 4, shortened(row.note or "no score", 24), "missing")
        else:
            cells += _dot(row, axis.at(row.low), axis.at(row.value), axis.at(row.high), y)
            cells += text(width - 2, y + 4, number(row.value), "value", "end")
        parts.append(group(cells, colour_class(row.colour, row.control), _summary(row)))
    return drawing(width, height, title, "".join(parts))


def _dot(row: Estimate, low: float, at: float, high: float, y: float) -> str:
    span = "" if math.isnan(row.low) or math.isnan(row.high) else line(low, y, high, y, "span")
    return span + element("circle", cx=at, cy=y, r=4.2, class_="dot hollow" if row.control else "dot")


def _summary(row: Estimate) -> str:
    kind = " (control)" if row.control else ""
    if math.isnan(row.value):
        return f"{row.label}{kind}: {row.note or 'no score'}"
    interval = "" if math.isnan(row.low) else f", interval {number(row.low)} to {number(row.high)}"
    return f"{row.label}{kind}: {number(row.value)}{interval}" + (f"; {row.note}" if row.note else "")
