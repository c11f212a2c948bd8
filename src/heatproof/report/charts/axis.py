"""From numbers to pixels: a linear axis with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from heatproof.report.typeset import MINUS


@dataclass(frozen=True)
class Axis:
    """A linear map from the interval [low, high] of numbers to [start, end] in pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a number; numbers outside are drawn at the border."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Some `about` round numbers inside the interval."""
        step = round_step((self.high - self.low) / max(about, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


def round_step(rough: float) -> float:
    """The 1, 2 or 5 times a power of ten nearest above `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next((factor * power for factor in (1, 2, 5) if rough <= factor * power * 1.0001), 10 * power)


def tick_labels(ticks: list[float]) -> list[str]:
    """The ticks with the fewest decimals that keep them distinct, with real minus signs."""
    if len(ticks) < 2:
        return [f"{tick:g}".replace("-", MINUS) for tick in ticks]
    step = ticks[1] - ticks[0]
    if max(abs(tick) for tick in ticks) >= 1e5 or step < 1e-4:
        return [_powered(tick) for tick in ticks]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return ["0" if abs(tick) < step / 1e6 else f"{tick:.{decimals}f}".replace("-", MINUS) for tick in ticks]


def _powered(tick: float) -> str:
    return "0" if tick == 0 else f"{tick:.1e}".replace("e-0", "e-").replace("e+0", "e").replace("-", MINUS)


def spanning(values: Iterable[float], start: float, end: float, room: float = 0.04) -> Axis:
    """The axis that shows all finite values with a little room on either side."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    spare = (high - low) * room or max(abs(high) * room, 1e-6)
    return Axis(low - spare, high + spare, start, end)
