"""Ranks under several measures, one line per method: where lines cross, measures disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from heatproof.report.charts.end_names import REACH, end_names
from heatproof.report.charts.spacing import GAP
from heatproof.report.charts.svg import (
    CHARACTER,
    apart,
    colour_class,
    coordinate,
    drawing,
    element,
    group,
    label_width,
    letters,
)
from heatproof.report.typeset import escape, listed, shortened

WIDTH, ROW, TOP = 440.0, 24.0, 8.0
USUAL = 16  # characters of a label; for longer ones the drawing grows


@dataclass(frozen=True)
class Ranks:
    """A method's rank under each measure, NaN where it has none."""

    label: str
    ranks: Sequence[float]
    colour: int | None = None
    control: bool = False


def bumps(methods: Sequence[Ranks], measures: Sequence[str], *, title: str) -> str:
    """Lines through the ranks from measure to measure, 1 at the top, named at both ends."""
    labels = [method.label for method in methods]
    most = letters(labels, USUAL)
    width = WIDTH + 2 * (most - USUAL) * CHARACTER
    side = label_width(labels, most) + REACH
    below = apart(measures, 22, 30)
    slant = max(len(shortened(measure, below)) for measure in measures) * CHARACTER * 0.5 + 16
    deepest = max((rank for method in methods for rank in method.ranks if math.isfinite(rank)), default=1.0)
    bottom = TOP + max(ROW * deepest, GAP * len(methods))  # room for the names, however many share a rank
    step = (width - 2 * side) / max(1, len(measures) - 1)
    across = [side + step * at for at in range(len(measures))]
    parts = [
        element(
            "text",
            escape(shortened(measure, below)) + element("title", escape(measure)),
            x=x,
            y=bottom + 14,
            transform=f"rotate(-30 {coordinate(x)} {coordinate(bottom + 14)})",
            class_="label",
            text_anchor="end",
        )
        for measure, x in zip(measures, across, strict=True)
    ]
    first, last = ([TOP + ROW * (method.ranks[at] - 0.5) for method in methods] for at in (0, -1))
    before = end_names(labels, first, across[0], TOP, bottom, most=most, right=False)
    after = end_names(labels, last, across[-1], TOP, bottom, most=most) if len(across) > 1 else [""] * len(labels)
    names = [left + right for left, right in zip(before, after, strict=True)]
    for method, name in sorted(zip(methods, names, strict=True), key=lambda each: each[0].colour is not None):
        parts.append(_method(method, measures, across, name))
    return drawing(width, bottom + slant + 10, title, "".join(parts))


def _method(method: Ranks, measures: Sequence[str], across: Sequence[float], names: str) -> str:
    places = [
        (x, TOP + ROW * (rank - 0.5)) for x, rank in zip(across, method.ranks, strict=True) if math.isfinite(rank)
    ]
    if not places:
        return ""
    path = f"M{coordinate(places[0][0])} {coordinate(places[0][1])}"
    for (x, y), (to_x, to_y) in pairwise(places):
        bend = (to_x - x) * 0.45
        path += (
            f"C{coordinate(x + bend)} {coordinate(y)} {coordinate(to_x - bend)} {coordinate(to_y)} "
            f"{coordinate(to_x)} {coordinate(to_y)}"
        )
    parts = element("path", d=path, class_="line")
    parts += "".join(
        element("circle", cx=x, cy=y, r=4, class_="dot hollow" if method.control else "dot") for x, y in places
    )
    parts += names
    summary = listed(
        [f"{rank:g} under {measure}" for measure, rank in zip(measures, method.ranks, strict=True) if rank == rank]
    )
    mood = " control" if method.control else ""
    return group(parts, colour_class(method.colour, method.control) + mood, f"{method.label}: {summary}")
