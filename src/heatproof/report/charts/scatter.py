"""Points with names: one number against another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heatproof.report.charts.axis import Axis, spanning, tick_labels
from heatproof.report.charts.spacing import spread
from heatproof.report.charts.svg import (
    CHARACTER,
    colour_class,
    coordinate,
    drawing,
    element,
    group,
    line,
    text,
)
from heatproof.report.typeset import escape, number, shortened

WIDTH, HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 400.0, 300.0, 14.0, 42.0, 46.0, 16.0
NAMED = 24  # with more points, names are in the tooltips only


@dataclass(frozen=True)
class Point:
    """A named point, with optional intervals in either direction."""

    label: str
    x: float
    y: float
    colour: int | None = None
    control: bool = False
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


def scatter(
    points: Sequence[Point],
    *,
    title: str,
    x_label: str,
    y_label: str,
    trend: Sequence[tuple[float, float]] = (),
) -> str:
    """Points on two axes, named without overlap; `trend` draws a thin line through places."""
    seen = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    across = spanning(
        [x for point in seen for x in (point.x, *(point.x_interval or ()))], LEFT, WIDTH - RIGHT, room=0.08
    )
    up = spanning([y for point in seen for y in (point.y, *(point.y_interval or ()))], HEIGHT - BOTTOM, TOP, room=0.08)
    parts = [_axes(across, up, x_label, y_label)]
    if len(trend) > 1:
        path = "L".join(f"{coordinate(across.at(x))} {coordinate(up.at(y))}" for x, y in trend)
        parts.append(element("path", d="M" + path, class_="trend"))
    names = _names(seen, across, up) if len(seen) <= NAMED else [""] * len(seen)
    for point, name in zip(seen, names, strict=True):
        x, y = across.at(point.x), up.at(point.y)
        marks = ""
        if point.x_interval:
            marks += line(across.at(point.x_interval[0]), y, across.at(point.x_interval[1]), y, "whisker")
        if point.y_interval:
            marks += line(x, up.at(point.y_interval[0]), x, up.at(point.y_interval[1]), "whisker")
        marks += element("circle", cx=x, cy=y, r=4.2, class_="dot hollow" if point.control else "dot")
        summary = f"{point.label}: {x_label} {number(point.x)}, {y_label} {number(point.y)}"
        parts.append(group(marks + name, colour_class(point.colour, point.control), summary))
    return drawing(WIDTH, HEIGHT, title, "".join(parts))


def _axes(across: Axis, up: Axis, x_label: str, y_label: str) -> str:
    rows, columns = up.ticks(5), across.ticks(6)
    parts = [line(across.start, up.at(tick), across.end, up.at(tick), "grid") for tick in rows]
    parts += [line(across.at(tick), up.start, across.at(tick), up.end, "grid") for tick in columns]
    parts += [
        text(across.start - 6, up.at(tick) + 4, words, "tick", "end")
        for tick, words in zip(rows, tick_labels(rows), strict=True)
    ]
    parts += [
        text(across.at(tick), up.start + 16, words, "tick", "middle")
        for tick, words in zip(columns, tick_labels(columns), strict=True)
    ]
    parts.append(text((across.start + across.end) / 2, up.start + 34, x_label, "axis-label", "middle"))
    middle = (up.start + up.end) / 2
    turn = f"rotate(-90 11 {coordinate(middle)})"
    label = element("text", escape(y_label), x=11, y=middle, transform=turn, class_="axis-label", text_anchor="middle")
    return "".join(parts) + label


def _names(points: Sequence[Point], across: Axis, up: Axis) -> list[str]:
    """Names right of the points in the left part, left of those in the right part, spread within each."""
    middle = across.start + (across.end - across.start) * 0.62
    names = [""] * len(points)
    for to_the_right in (True, False):
        side = [at for at, point in enumerate(points) if (across.at(point.x) <= middle) == to_the_right]
        places = spread([up.at(points[at].y) for at in side], 12.5, up.end + 4, up.start - 4)
        for at, place in zip(side, places, strict=True):
            x = across.at(points[at].x) + (8 if to_the_right else -8)
            words = shortened(points[at].label, int((across.end - across.start) / 2 / CHARACTER))
            names[at] = text(x, place + 4, words, "name", None if to_the_right else "end")
    return names
