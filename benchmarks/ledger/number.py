"""A measured number with its interval, and what it says about a claim."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scipy import stats

Verdict = Literal["held", "not held", "cannot tell"]
VERDICTS: tuple[Verdict, ...] = ("held", "not held", "cannot tell")
POWER = 0.8


@dataclass(frozen=True)
class Number:
    """An estimate, its interval at `level`, and how many pictures it is of; NaN where there is no interval."""

    what: str
    value: float
    low: float
    high: float
    n: int
    level: float = 0.95
    unit: str = ""  # "%" and "count" are drawn without decimals

    @property
    def detectable(self) -> float:
        """The smallest difference that as many pictures would have shown with a probability of 80 %, from the width."""
        reach = float(stats.norm.ppf((1 + self.level) / 2))
        return (self.high - self.low) / 2 * (reach + float(stats.norm.ppf(POWER))) / reach

    def __str__(self) -> str:
        shown = drawn(self.value, self.unit)
        if math.isnan(self.low):
            return f"{self.what}: {shown}"
        return f"{self.what}: {shown} [{drawn(self.low, self.unit)}, {drawn(self.high, self.unit)}]"


@dataclass(frozen=True)
class Finding:
    """What a recipe says about a claim: all numbers, those the verdict rests on, and the verdict."""

    numbers: tuple[Number, ...]
    verdict: Verdict
    deciding: tuple[Number, ...] = ()  # empty: a count that has no interval decides

    @property
    def n(self) -> int:
        """Pictures; the fewest of any number that decides."""
        return min((number.n for number in self.deciding or self.numbers), default=0)

    @property
    def detectable(self) -> str:
        """The largest of the smallest differences that the deciding numbers would have shown; empty without any."""
        known = [number for number in self.deciding if not math.isnan(number.low)]
        if not known:
            return ""
        widest = max(known, key=lambda number: number.detectable)
        return drawn(widest.detectable, widest.unit)


def drawn(value: float, unit: str = "") -> str:
    """Two decimals, three below a tenth, one from ten on; counts and per cent without any; a true minus sign."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    decimals = 0 if unit in ("%", "count") else 1 if size >= 10 else 3 if 0 < size < 0.1 else 2
    text = f"{size:.{decimals}f}"
    zero = not float(text)
    return ("−" if value < 0 and not zero else "") + text + (" %" if unit == "%" else "")


def above(number: Number, least: float = 0.0) -> Verdict:
    """Whether the number is more than `least`."""
    return "held" if number.low > least else "not held" if number.high <= least else "cannot tell"


def below(number: Number, most: float = 0.0) -> Verdict:
    """Whether the number is less than `most`."""
    return "held" if number.high < most else "not held" if number.low >= most else "cannot tell"


def near(number: Number, value: float, margin: float) -> Verdict:
    """Whether the number is within `margin` of a value: equivalence, not the mere absence of a difference."""
    if number.low > value - margin and number.high < value + margin:
        return "held"
    return "not held" if number.low > value + margin or number.high < value - margin else "cannot tell"


def published(number: Number, size: float) -> Verdict:
    """Whether a published size lies in the interval, and the absence of an effect does not."""
    if not number.low <= size <= number.high:
        return "not held" if not math.isnan(number.low) else "cannot tell"
    return "held" if number.low > 0 or number.high < 0 else "cannot tell"


def every(verdicts: Iterable[Verdict]) -> Verdict:
    """Whether all parts of a claim hold."""
    found = list(verdicts)
    if "not held" in found:
        return "not held"
    return "held" if found and all(one == "held" for one in found) else "cannot tell"


def some(verdicts: Iterable[Verdict]) -> Verdict:
    """Whether one part of a claim holds."""
    found = list(verdicts)
    if "held" in found:
        return "held"
    return "not held" if found and all(one == "not held" for one in found) else "cannot tell"


def counted(found: bool) -> Verdict:
    """The verdict of a claim that something occurs, or does not, on these very pictures."""
    return "held" if found else "not held"
