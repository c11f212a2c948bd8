"""Rank of each method over setups, ordered by a number such as R-OMS."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heatproof.report.charts.axis import spanning
from heatproof.report.charts.bumps import Ranks
from heatproof.report.charts.end_names import REACH, end_names
from heatproof.report.charts.spacing import GAP
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
from heatproof.report.typeset import counted, number

WIDTH, ROW, TOP, BOTTOM, LEFT = 400.0, 22.0, 10.0, 42.0, 30.0
TICKS = 5
USUAL = 17  # characters of a label; for longer ones the drawing grows


def ranks_over(xs: Sequence[float], methods: Sequence[Ranks], *, title: str, x_label: str) -> str:
    """One line per method through its ranks at the setups, 1 at the top; flat lines mean that setups agree.

    Setups are evenly spaced in the order of their `xs`: at their true places most would overlap.
    """
    order = sorted((at for at, x in enumerate(xs) if math.isfinite(x)), key=lambda at: xs[at])
    deepest = max((rank for method in methods for rank in method.ranks if math.isfinite(rank)), default=1.0)
    floor = TOP + max(ROW * deepest, GAP * len(methods))  # room for the names, however many share a rank
    labels = [method.label for method in methods]
    most = letters(labels, USUAL)
    width = WIDTH + (most - USUAL) * CHARACTER
    right = width - label_width(labels, most) - REACH
    across = spanning(range(len(order)), LEFT, right, room=0.03)
    ticks = sorted({round(share * (len(order) - 1) / (TICKS - 1)) for share in range(TICKS)})
    parts = [line(across.at(tick), TOP, across.at(tick), floor, "grid") for tick in ticks]
    parts += [text(across.at(tick), floor + 16, number(xs[order[tick]], 2), "tick", "middle") for tick in ticks]
    parts += [
        text(LEFT - 10, TOP + ROW * (rank - 0.5) + 4, str(rank), "tick", "end") for rank in range(1, int(deepest) + 1)
    ]
    parts.append(text((LEFT + right) / 2, floor + 34, x_label, "axis-label", "middle"))
    ends = [_last(method, order) for method in methods]
    names = dict(zip(labels, end_names(labels, ends, right, TOP, floor, most=most), strict=True))
    for method in sorted(methods, key=lambda each: each.colour is not None):
        places = [
            (across.at(place), TOP + ROW * (method.ranks[at] - 0.5))
            for place, at in enumerate(order)
            if math.isfinite(method.ranks[at])
        ]
        if not places:
            continue
        path = "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in places)
        drawn = element("path", d="M" + path, class_="line")
        drawn += "".join(
            element("circle", cx=x, cy=y, r=3, class_="dot hollow" if method.control else "dot") for x, y in places
        )
        drawn += names[method.label]
        known = [rank for rank in method.ranks if math.isfinite(rank)]
        summary = (
            f"{method.label}: rank {number(min(known))} to {number(max(known))} over {counted(len(known), 'setup')}, "
            f"mean {number(sum(known) / len(known))}"
        )
        mood = " control" if method.control else ""
        parts.append(group(drawn, colour_class(method.colour, method.control) + mood, summary))
    return drawing(width, floor + BOTTOM, title, "".join(parts))


def _last(method: Ranks, order: Sequence[int]) -> float:
    """The height at which the method's line ends."""
    known = [method.ranks[at] for at in order if math.isfinite(method.ranks[at])]
    return TOP + ROW * (known[-1] - 0.5) if known else math.nan
