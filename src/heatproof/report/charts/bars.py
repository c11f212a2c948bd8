"""Bars with the marks they have to pass: chance, a blind control, a random region."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heatproof.report.charts.axis import Axis, spanning, tick_labels
from heatproof.report.charts.svg import (
    CHARACTER,
    colour_class,
    coordinate,
    drawing,
    element,
    group,
    label_width,
    letters,
    line,
    text,
)
from heatproof.report.typeset import number, shortened

WIDTH, ROW, TOP, BOTTOM = 400.0, 24.0, 24.0, 26.0
USUAL = 22  # characters of a label; for longer ones the drawing grows


@dataclass(frozen=True)
class Bar:
    """A value with an optional interval and its own baseline, the mark it should pass."""

    label: str
    value: float
    low: float = math.nan
    high: float = math.nan
    baseline: float = math.nan
    colour: int | None = None
    control: bool = False


def bars(rows: Sequence[Bar], *, title: str, baseline_label: str = "", marks: Sequence[tuple[str, float]] = ()) -> str:
    """Bars from zero in the order given. A bar's own baseline is a short stroke, `marks` go through all."""
    labels = [bar.label for bar in rows]
    most = letters(labels, USUAL)
    width = WIDTH + (most - USUAL) * CHARACTER
    left = label_width(labels, most) + 8
    shown = [0.0, *(mark for _, mark in marks)]
    shown += [value for bar in rows for value in (bar.value, bar.low, bar.high, bar.baseline)]
    axis = spanning(shown, left, width - 52, room=0.03)
    height = TOP + ROW * len(rows) + BOTTOM
    floor = height - BOTTOM
    ticks = axis.ticks(4)
    parts = [line(axis.at(tick), TOP, axis.at(tick), floor, "grid") for tick in ticks]
    parts += [
        text(axis.at(tick), floor + 16, words, "tick", "middle")
        for tick, words in zip(ticks, tick_labels(ticks), strict=True)
    ]
    for place, bar in enumerate(rows):
        parts.append(_row(bar, axis, TOP + ROW * (place + 0.5), most, width))
    parts.append(line(axis.at(0), TOP, axis.at(0), floor, "axis"))
    for name, mark in marks:
        parts.append(line(axis.at(mark), TOP - 6, axis.at(mark), floor, "reference"))
        parts.append(text(axis.at(mark), TOP - 10, shortened(name, 30), "tick", "middle"))
    if baseline_label and any(math.isfinite(bar.baseline) for bar in rows):
        parts.append(element("path", d="M2 6v12", class_="baseline"))
        parts.append(text(9, 16, baseline_label, "tick"))
    return drawing(width, height, title, "".join(parts))


def _row(bar: Bar, axis: Axis, y: float, most: int, width: float) -> str:
    cells = text(2, y + 4, shortened(bar.label, most), "label control" if bar.control else "label")
    if math.isfinite(bar.value):
        start, end = sorted((axis.at(0), axis.at(bar.value)))
        cells += element("rect", x=start, y=y - 6, width=max(end - start, 0.5), height=12, class_="bar")
        if math.isfinite(bar.low) and math.isfinite(bar.high):
            cells += line(axis.at(bar.low), y, axis.at(bar.high), y, "whisker")
        cells += text(width - 2, y + 4, number(bar.value), "value", "end")
    else:
        cells += text(axis.at(0) + 6, y + 4, "no score", "missing")
    if math.isfinite(bar.baseline):
        at = coordinate(axis.at(bar.baseline))
        cells += element("path", d=f"M{at} {coordinate(y - 9)}v18", class_="baseline")
    beside = f"; baseline {number(bar.baseline)}" if math.isfinite(bar.baseline) else ""
    return group(cells, colour_class(bar.colour, bar.control), f"{bar.label}: {number(bar.value)}{beside}")
