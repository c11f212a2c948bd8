"""Ranks under several measures, one line per method: where lines cross, measures disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from heatproof.report.charts.svg import (
    CHARACTER,
    colour_class,
    coordinate,
    drawing,
    element,
    group,
    label_width,
    text,
)
from heatproof.report.typeset import escape, listed, shortened

ROW, TOP = 24.0, 8.0


@dataclass(frozen=True)
class Ranks:
    """A method's rank under each measure, NaN where it has none."""

    label: str
    ranks: Sequence[float]
    colour: int | None = None
    control: bool = False


def bumps(methods: Sequence[Ranks], measures: Sequence[str], *, title: str, width: float = 440.0) -> str:
    """Lines through the ranks from measure to measure, 1 at the top, named at both ends."""
    side = label_width([method.label for method in methods], 16) + 14
    slant = max(len(shortened(measure, 22)) for measure in measures) * CHARACTER * 0.5 + 16
    deepest = max((rank for method in methods for rank in method.ranks if math.isfinite(rank)), default=1.0)
    bottom = TOP + ROW * deepest
    step = (width - 2 * side) / max(1, len(measures) - 1)
    across = [side + step * at for at in range(len(measures))]
    parts = [
        element(
            "text",
            escape(shortened(measure, 22)) + element("title", escape(measure)),
            x=x,
            y=bottom + 14,
            transform=f"rotate(-30 {coordinate(x)} {coordinate(bottom + 14)})",
            class_="label",
            text_anchor="end",
        )
        for measure, x in zip(measures, across, strict=True)
    ]
    for method in sorted(methods, key=lambda each: each.colour is not None):
        parts.append(_method(method, measures, across))
    return drawing(width, bottom + slant + 10, title, "".join(parts))


def _method(method: Ranks, measures: Sequence[str], across: Sequence[float]) -> str:
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
    name = shortened(method.label, 16)
    if math.isfinite(method.ranks[0]):
        parts += text(across[0] - 10, places[0][1] + 4, name, "name", "end")
    if math.isfinite(method.ranks[-1]) and len(across) > 1:
        parts += text(across[-1] + 10, places[-1][1] + 4, name, "name")
    said = listed(
        [f"{rank:g} under {measure}" for measure, rank in zip(measures, method.ranks, strict=True) if rank == rank]
    )
    mood = " control" if method.control else ""
    return group(parts, colour_class(method.colour, method.control) + mood, f"{method.label}: {said}")
