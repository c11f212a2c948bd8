"""How scores spread: one violin per method with its median, middle half and some of the scores themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
from heatproof.report.typeset import counted, number, shortened

WIDTH, ROW, TOP, BOTTOM = 400.0, 34.0, 6.0, 26.0
USUAL = 22  # characters of a label; for longer ones the drawing grows
DOTS = 40  # scores drawn per violin, at even quantiles: the page must not grow with the number of images


@dataclass(frozen=True)
class Spread:
    """All scores of one method."""

    label: str
    values: Sequence[float]
    colour: int | None = None
    control: bool = False


def strips(
    spreads: Sequence[Spread], *, title: str, reference: float | None = None, within: Iterable[float] = ()
) -> str:
    """Violins on one axis in the order given; missing scores are left out and counted in the tooltip.

    `within` are further numbers that the axis covers, so that charts to be compared share one axis.
    """
    finite = [_finite(each.values) for each in spreads]
    labels = [each.label for each in spreads]
    most = letters(labels, USUAL)
    width = WIDTH + (most - USUAL) * CHARACTER
    left = label_width(labels, most) + 8
    shown = [*within]
    shown += [float(value) for values in finite if values.size for value in (values.min(), values.max())]
    axis = spanning([*shown, reference] if reference is not None else shown, left, width - 10)
    height = TOP + ROW * len(spreads) + BOTTOM
    floor = height - BOTTOM
    ticks = axis.ticks(5)
    parts = [line(axis.at(tick), TOP, axis.at(tick), floor, "grid") for tick in ticks]
    parts += [
        text(axis.at(tick), floor + 16, words, "tick", "middle")
        for tick, words in zip(ticks, tick_labels(ticks), strict=True)
    ]
    if reference is not None:
        parts.append(line(axis.at(reference), TOP, axis.at(reference), floor, "reference"))
    for place, (each, values) in enumerate(zip(spreads, finite, strict=True)):
        y = TOP + ROW * (place + 0.5)
        cells = text(2, y + 4, shortened(each.label, most), "label control" if each.control else "label")
        cells += _violin(values, axis, y) if values.size else text(left, y + 4, "no score", "missing")
        parts.append(group(cells, colour_class(each.colour, each.control), _summary(each, values)))
    return drawing(width, height, title, "".join(parts))


def density(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """A Gaussian kernel density on the grid (Silverman's width), scaled to a highest value of 1."""
    spread = min(
        float(values.std()),
        float(np.subtract(*np.percentile(values, [75, 25]))) / 1.34 or float(values.std()),
    )
    width = max(0.9 * spread * len(values) ** -0.2, float(grid[-1] - grid[0]) / 100, 1e-12)
    # Ten thousand scores say nothing here that two hundred quantiles do not.
    sample = values if values.size <= 200 else np.quantile(values, np.linspace(0.0025, 0.9975, 200))
    heights: NDArray[np.float64] = np.exp(-0.5 * ((grid[:, None] - sample[None, :]) / width) ** 2).sum(axis=1)
    return heights / heights.max() if heights.max() > 0 else heights


def _violin(values: NDArray[np.float64], axis: Axis, y: float) -> str:
    grid = np.linspace(values.min(), values.max(), 36) if np.ptp(values) > 0 else values[:1]
    half = density(values, grid) * (ROW / 2 - 4) if grid.size > 1 else np.array([ROW / 2 - 6])
    upper = [f"{coordinate(axis.at(float(at)))} {coordinate(y - up)}" for at, up in zip(grid, half, strict=True)]
    lower = [f"{coordinate(axis.at(float(at)))} {coordinate(y + up)}" for at, up in zip(grid, half, strict=True)]
    parts = element("path", d="M" + "L".join([*upper, *lower[::-1]]) + "Z", class_="violin")
    some = values if values.size <= DOTS else np.quantile(values, (np.arange(DOTS) + 0.5) / DOTS)
    marks = "".join(f"M{coordinate(axis.at(float(value)))} {coordinate(y - 3)}v6" for value in np.sort(some))
    parts += element("path", d=marks, class_="rug")
    first, middle, third = (axis.at(float(value)) for value in np.percentile(values, [25, 50, 75]))
    parts += line(first, y, third, y, "span")
    return parts + element("circle", cx=middle, cy=y, r=3.6, class_="dot")


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    kept: NDArray[np.float64] = array[np.isfinite(array)]
    return kept


def _summary(each: Spread, values: NDArray[np.float64]) -> str:
    missing = len(each.values) - values.size
    hole = f", {missing} missing" if missing else ""
    if not values.size:
        return f"{each.label}: no score{hole}"
    first, middle, third = np.percentile(values, [25, 50, 75])
    half = f"middle half {number(float(first))} to {number(float(third))}"
    return f"{each.label}: median {number(float(middle))}, {half}, {counted(values.size, 'score')}{hole}"
