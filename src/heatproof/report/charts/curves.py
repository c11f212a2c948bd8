"""Curves with bands, each named where it ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heatproof.report.charts.axis import Axis, spanning, tick_labels
from heatproof.report.charts.spacing import GAP, spread
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
from heatproof.report.typeset import escape, number, shortened

WIDTH, HEIGHT, TOP, BOTTOM, LEFT = 400.0, 276.0, 12.0, 40.0, 40.0
USUAL = 17  # characters of a label; for longer ones the drawing grows
DASHES = 4  # dash patterns that distinguish the controls, all of which are grey
SAMPLE = 16.0  # of a control's pattern before its name, where there are several


@dataclass(frozen=True)
class Line:
    """A curve with an optional band. A quiet line is thin, grey and unnamed: there, but not competing."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    colour: int | None = None
    control: bool = False
    quiet: bool = False


def curves(lines: Sequence[Line], *, title: str, x_label: str = "", y_label: str = "") -> str:
    """Lines with ribbons over shared axes; names stand at the lines' ends, moved apart where they collide."""
    named = [each for each in lines if not each.quiet]
    fitting = int((HEIGHT - TOP - BOTTOM) / GAP) + 1
    named, rest = named[:fitting], named[fitting:]
    dashes = {each.label: at % DASHES for at, each in enumerate(each for each in lines if each.control)}
    sample = SAMPLE if len(dashes) > 1 else 5.0
    labels = [each.label for each in named]
    most = letters(labels, USUAL)
    width = WIDTH + (most - USUAL) * CHARACTER
    right = width - label_width(labels, most) - 11 - sample
    across = spanning([x for each in lines for x in each.x], LEFT, right, room=0.0)
    heights = [y for each in lines for y in [*each.y, *(each.low or []), *(each.high or [])]]
    up = spanning(heights, HEIGHT - BOTTOM, TOP)
    parts = [_axes(across, up, x_label, y_label)]
    # The named lie over the quiet, the coloured over the grey.
    for each in sorted([*lines], key=lambda one: (not one.quiet and one not in rest, one.colour is not None)):
        parts.append(_curve(each, across, up, _class(each, dashes)))
    parts.append(_names(named, across, up, dashes, sample, most))
    return drawing(width, HEIGHT, title, "".join(parts))


def _class(each: Line, dashes: Mapping[str, int]) -> str:
    mood = " quiet" if each.quiet else f" control d{dashes[each.label]}" if each.control else ""
    return colour_class(each.colour, each.quiet or each.control) + mood


def _axes(across: Axis, up: Axis, x_label: str, y_label: str) -> str:
    floor = up.start
    rows, columns = up.ticks(5), across.ticks(5)
    parts = [line(across.start, up.at(tick), across.end, up.at(tick), "grid") for tick in rows]
    parts += [
        text(across.start - 6, up.at(tick) + 4, words, "tick", "end")
        for tick, words in zip(rows, tick_labels(rows), strict=True)
    ]
    parts += [
        text(across.at(tick), floor + 16, words, "tick", "middle")
        for tick, words in zip(columns, tick_labels(columns), strict=True)
    ]
    parts.append(line(across.start, floor, across.end, floor, "axis"))
    if x_label:
        parts.append(text((across.start + across.end) / 2, floor + 33, x_label, "axis-label", "middle"))
    if y_label:
        middle = (up.start + up.end) / 2
        turn = f"rotate(-90 10 {coordinate(middle)})"
        parts.append(
            element(
                "text",
                escape(y_label),
                x=10,
                y=middle,
                transform=turn,
                class_="axis-label",
                text_anchor="middle",
            )
        )
    return "".join(parts)


def _curve(each: Line, across: Axis, up: Axis, class_: str) -> str:
    stroke = element("path", d=_path(each.x, each.y, across, up), class_="line")
    if each.low is not None and each.high is not None and not each.quiet:
        there = _path(each.x, each.high, across, up)
        back = _path(list(each.x)[::-1], list(each.low)[::-1], across, up)
        stroke = element("path", d=f"{there}L{back[1:]}Z", class_="band") + stroke
    return group(stroke, class_, _summary(each))


def _path(xs: Sequence[float], ys: Sequence[float], across: Axis, up: Axis) -> str:
    """A polyline through the finite points."""
    points = [
        f"{coordinate(across.at(x))} {coordinate(up.at(y))}"
        for x, y in zip(xs, ys, strict=True)
        if math.isfinite(x) and math.isfinite(y)
    ]
    return "M" + "L".join(points)


def _names(named: Sequence[Line], across: Axis, up: Axis, dashes: Mapping[str, int], sample: float, most: int) -> str:
    ends = [_end(each) for each in named]
    # Curves often end in one point (everything removed); then their names stand in the order of their means.
    middling = [float(np.nanmean(np.asarray(each.y, dtype=float))) for each in named]
    wishes = [up.at(y) + 1e-3 * up.at(mean) for (_, y), mean in zip(ends, middling, strict=True)]
    places = spread(wishes, GAP, TOP + 4, up.start)
    parts = []
    for each, (x, y), place in zip(named, ends, places, strict=True):
        start = across.at(x)
        lead = (
            f"M{coordinate(start + 2)} {coordinate(up.at(y))}L{coordinate(across.end + 5)} "
            f"{coordinate(place)}"
            f"L{coordinate(across.end + 5 + sample)} {coordinate(place)}"
        )
        name = text(across.end + 8 + sample, place + 4, shortened(each.label, most), "name", tooltip=each.label)
        parts.append(group(element("path", d=lead, class_="lead") + name, _class(each, dashes)))
    return "".join(parts)


def _end(each: Line) -> tuple[float, float]:
    finite = [(x, y) for x, y in zip(each.x, each.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
    return finite[-1] if finite else (math.nan, math.nan)


def _summary(each: Line) -> str:
    (_, last), first = _end(each), next((y for y in each.y if math.isfinite(y)), math.nan)
    return f"{each.label}{' (control)' if each.control else ''}: from {number(first)} to {number(last)}"
