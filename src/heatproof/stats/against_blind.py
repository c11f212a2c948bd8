"""A method's standing against the maps that look at nothing: noise, edges, a bump in the centre, a constant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

from heatproof.stats.page import PairTests

Standing: TypeAlias = Literal["clear", "level", "beaten", "unknown"]
MARKS: Mapping[str, str] = {"beaten": "‡", "level": "°"}  # after the name of a method, wherever it is ranked
MEANING: Mapping[str, str] = {
    "beaten": "a blind control beats it: this score is no evidence that the map knows the model",
    "level": "not separated from some blind control: this score does not show that the map knows the model",
}


def against_blind(tests: PairTests | None, methods: Collection[str], blind: Collection[str]) -> dict[str, Standing]:
    """The standing of each of the methods, by the tests of the whole page.

    `clear`: it beats every blind control. `beaten`: some blind control beats it. `level`: neither. `unknown`: no blind
    control has scores beside it.
    """
    rivals = [name for name in blind if tests is not None and name in tests.methods]
    if tests is None or not rivals:
        return dict.fromkeys(methods, "unknown")
    beats = tests.beats()

    def standing(method: str) -> Standing:
        if any((control, method) in beats for control in rivals):
            return "beaten"
        return "clear" if all((method, control) in beats for control in rivals) else "level"

    return {method: standing(method) if method in tests.methods else "unknown" for method in methods}


def legend(standings: Collection[str]) -> str:
    """What the marks mean that these standings have, as a line below a table; empty where there are none."""
    parts = [f"{MARKS[one]} {MEANING[one]}" for one in MARKS if one in standings]
    return f"{'; '.join(parts)}." if parts else ""
