"""Demšar's critical-difference diagram, drawn upright: mean ranks in rows, a bar beside methods not separated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heatproof.report.charts.axis import Axis
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
from heatproof.report.typeset import listed, number, shortened

WIDTH, ROW, TOP, BOTTOM, BAR = 400.0, 23.0, 30.0, 26.0, 11.0
USUAL = 22  # characters of a label; for longer ones the drawing grows


def cliques(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """The longest runs (first, last) of sorted mean ranks that lie within the critical difference."""
    runs: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(at for at in range(first, len(ranks)) if ranks[at] - ranks[first] <= difference)
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def critical_difference(
    mean_ranks: Mapping[str, float],
    difference: float,
    *,
    title: str,
    colours: Mapping[str, int] | None = None,
    groups: Sequence[Sequence[str]] | None = None,
) -> str:
    """Mean rank per method, best (1) at the top left, and the difference that two of them must exceed.

    `groups` are the methods that no test separates, where they follow from more than the difference.
    """
    colours = colours or {}
    names = sorted(mean_ranks, key=lambda name: (mean_ranks[name], name))
    ranks = [mean_ranks[name] for name in names]
    runs = cliques(ranks, difference)
    if groups is not None:
        found = [sorted(names.index(name) for name in members) for members in groups]
        runs = [(members[0], members[-1]) for members in found]
    most = letters(names, USUAL)
    width = WIDTH + (most - USUAL) * CHARACTER
    values = [f"{rank:.2f}" for rank in ranks]
    left = label_width(names, most) + label_width(values, USUAL) + 6
    axis = Axis(1.0, max(2.0, float(len(names))), left, width - 22 - BAR * len(runs))
    height = TOP + ROW * len(names) + BOTTOM
    floor = height - BOTTOM
    ticks = axis.ticks(6)
    parts = [line(axis.at(tick), TOP, axis.at(tick), floor, "grid") for tick in ticks]
    parts += [text(axis.at(tick), floor + 16, f"{tick:g}", "tick", "middle") for tick in ticks]
    parts.append(_ruler(axis, difference, width))
    for at, (name, rank, value) in enumerate(zip(names, ranks, values, strict=True)):
        y = TOP + ROW * (at + 0.5)
        cells = text(2, y + 4, shortened(name, most), "label") + text(left - 10, y + 4, value, "value", "end")
        cells += line(axis.start, y, axis.at(rank), y, "stem")
        cells += element("circle", cx=axis.at(rank), cy=y, r=4.2, class_="dot")
        colour = colours.get(name)
        parts.append(group(cells, colour_class(colour), f"{name}: mean rank {value}"))
    for at, (first, last) in enumerate(runs):
        x = width - BAR * (len(runs) - at) + 4
        bar = line(x, TOP + ROW * first + 7, x, TOP + ROW * (last + 1) - 7, "clique")
        parts.append(group(bar, None, f"not separated: {listed(names[first : last + 1])}"))
    return drawing(width, height, title, "".join(parts))


def _ruler(axis: Axis, difference: float, width: float) -> str:
    """The critical difference as a length on the axis of ranks."""
    end = axis.at(1 + difference)
    ruler = line(axis.start, 16, end, 16, "axis")
    ruler += line(axis.start, 12, axis.start, 20, "axis") + line(end, 12, end, 20, "axis")
    words = f"critical difference {number(difference)}"
    inside = end + 6 + len(words) * 6 < width
    return ruler + text(end + 6 if inside else end, 20 if inside else 9, words, "tick", None if inside else "end")
