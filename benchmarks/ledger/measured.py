"""What was measured: a small JSON file beside the program, kept until a row is computed again."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ledger.number import Finding, Number
from ledger.recipe import Scale
from ledger.rows import Row

FILE = Path(__file__).parent / "measured.json"
DIGITS = 6  # of every stored number


@dataclass(frozen=True)
class Measured:
    """A finding, with the command it came from."""

    command: str
    finding: Finding


class Store:
    """Row and scale -> what was measured."""

    def __init__(self, path: Path = FILE) -> None:
        self.path = path
        self.rows = _read(path)
        self.new: dict[str, dict[Scale, Any]] = {}

    def get(self, row: str, scale: Scale) -> Measured | None:
        stored = self.rows.get(row, {}).get(scale)
        return None if stored is None else Measured(stored["command"], _finding(stored))

    def best(self, row: str) -> Measured | None:
        """At full scale, or else at the quick one."""
        return self.get(row, "full") or self.get(row, "quick")

    def put(self, row: Row, scale: Scale, finding: Finding) -> None:
        numbers = [_plain(one) for one in finding.numbers]
        deciding = [finding.numbers.index(one) for one in finding.deciding]
        stored = {"command": row.recipe.shown(scale), "verdict": finding.verdict, "numbers": numbers}
        self.new.setdefault(row.name, {})[scale] = {**stored, "deciding": deciding}
        self.rows.setdefault(row.name, {})[scale] = self.new[row.name][scale]

    def write(self, known: list[str]) -> None:
        """What is new, beside what another command may have written meanwhile; rows no longer known are dropped."""
        self.rows = _read(self.path)
        for name, found in self.new.items():
            self.rows.setdefault(name, {}).update(found)
        kept = {name: self.rows[name] for name in known if name in self.rows}
        self.path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def _read(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _plain(number: Number) -> dict[str, Any]:
    values = asdict(number)
    for name in ("value", "low", "high"):
        value = values[name]
        values[name] = float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return values


def _finding(stored: dict[str, Any]) -> Finding:
    numbers = tuple(
        Number(**{**one, **{name: math.nan if one[name] is None else one[name] for name in ("value", "low", "high")}})
        for one in stored["numbers"]
    )
    return Finding(numbers, stored["verdict"], tuple(numbers[at] for at in stored["deciding"]))
