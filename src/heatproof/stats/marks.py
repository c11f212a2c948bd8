"""A method's mark in one comparison, by the tests of the whole page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from heatproof.stats.against_blind import against_blind
from heatproof.stats.page import PairTests

Mark: TypeAlias = Literal["best", "good", "behind", "open", "beaten"]
MARKS: tuple[Mark, ...] = ("best", "good", "behind", "open", "beaten")  # from the best down


def mark_of(
    method: str,
    tests: PairTests | None,
    contestants: Collection[str],
    blind: Collection[str],
    *,
    yardstick: bool = True,
) -> Mark:
    """The mark of one of the contestants.

    `best`: it beats every other method. `good`: no method beats it. `behind`: some method does. All three beat every
    blind control. `open`: the tests do not separate it from a blind control, or from any method. `beaten`: some blind
    control beats it. Without a `yardstick` blind controls do not count, since a map that ignores the picture passes for
    free; `good` then means that it beats some method.
    """
    if tests is None or method not in tests.methods:
        return "open"
    solid = tests.beats()
    rivals = [other for other in contestants if other != method and other in tests.methods]
    won = [other for other in rivals if (method, other) in solid]
    lost = any((other, method) in solid for other in rivals)
    if yardstick:
        standing = against_blind(tests, [method], blind)[method]
        if standing == "beaten":
            return "beaten"
        if standing == "level":
            return "open"
        proven = standing == "clear" or bool(won)
    else:
        proven = bool(won)
    if rivals and len(won) == len(rivals):
        return "best"
    return "behind" if lost else "good" if proven else "open"


@dataclass(frozen=True)
class Agreement:
    """What the marks of several comparisons amount to: the mark that more than half of them reach, and how many do."""

    mark: Mark
    reached: int
    of: int

    @property
    def unanimous(self) -> bool:
        return self.reached == self.of


def agreement(marks: Sequence[Mark]) -> Agreement:
    """The best mark that more than half of the comparisons reach."""
    places = sorted(MARKS.index(mark) for mark in marks)
    common = places[len(places) // 2]
    return Agreement(MARKS[common], sum(place <= common for place in places), len(places))
