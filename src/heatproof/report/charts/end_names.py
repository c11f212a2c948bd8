"""Names beside the ends of lines, moved apart where lines end in one point."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heatproof.report.charts.spacing import GAP, spread
from heatproof.report.charts.svg import line, text
from heatproof.report.typeset import shortened

REACH = 14.0  # from a line's end to its name


def end_names(
    labels: Sequence[str], ends: Sequence[float], x: float, low: float, high: float, *, most: int, right: bool = True
) -> list[str]:
    """Each name at the height of its line's end, moved apart within [low, high] and then joined to it by a stroke.

    A line without an end there (NaN) has no name there.
    """
    known = [at for at, end in enumerate(ends) if math.isfinite(end)]
    places = spread([ends[at] for at in known], GAP, low + GAP / 2, high - GAP / 2)
    names = [""] * len(labels)
    side = 1.0 if right else -1.0
    for at, place in zip(known, places, strict=True):
        moved = abs(place - ends[at]) > 0.5
        stroke = line(x + side * 5, ends[at], x + side * (REACH - 2), place, "lead") if moved else ""
        name = shortened(labels[at], most)
        names[at] = stroke + text(x + side * REACH, place + 4, name, "name", None if right else "end")
    return names
