"""The labels that pictures carry, where they may carry several: lists in one cell, or a column for each label.

path,label                       path,label:Edema,label:Effusion
a.png,Edema|Effusion             a.png,1,1
b.png,none                       b.png,0,
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heatproof.data._support.class_names import class_indices
from heatproof.data._support.files import UNKNOWN
from heatproof.errors import BadInput

PREFIX = "label:"  # of a column that says whether one label is there
NONE = "none"  # the cell of a picture that carries no label
_SEVERAL = re.compile(r"[;|]|^\s*\d+\s*(,\s*\d+\s*)+$")  # `3;7`, `cat|dog`, `3, 7`
_SAYS: Mapping[str, bool | None] = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), True),
    **dict.fromkeys(("0", "0.0", "false", "no"), False),
    **dict.fromkeys(("", "-1", "-1.0", "nan"), None),
}


class Carried(NamedTuple):
    """The labels that are there, and those of which it is not known; what holds of all others."""

    there: frozenset[int]
    unsure: frozenset[int] = frozenset()
    others: int = 0  # absent, or UNKNOWN

    def has(self, label: int) -> int:
        """1, 0, or -1 where it is not known."""
        if label in self.there:
            return 1
        return UNKNOWN if label in self.unsure else self.others


def is_list(text: str, classes: Sequence[str] = ()) -> bool:
    """Whether a cell lists several labels, or says that there is none."""
    return text not in classes and (text == NONE or _SEVERAL.search(text) is not None)


def listed(text: str) -> list[str]:
    """The labels of such a cell."""
    parts = re.split(r"[;|]" if re.search(r"[;|]", text) else ",", text)
    return [] if text == NONE else [part.strip() for part in parts if part.strip()]


def indicators(header: Sequence[str], classes: Sequence[str]) -> dict[str, str]:
    """The columns that say whether a label is there, by label: `label:NAME`, or the name of a class alone."""
    marked = {name.removeprefix(PREFIX).strip(): name for name in header if name.startswith(PREFIX)}
    if marked or "label" in header:
        return marked
    return {name: name for name in header if name in classes and name not in ("path", "mask")}


def carried(rows: Sequence[Mapping[str, str]], classes: Sequence[str], where: Any) -> tuple[Carried | None, ...]:
    """What every row of a table says; None where it says nothing."""
    columns = indicators(tuple(rows[0]), classes)
    if columns:
        places = _indices(list(columns), classes)
        return tuple(_of_columns(row, columns, places, line, where) for line, row in enumerate(rows, start=2))
    cells = [row.get("label", "") for row in rows]
    names = {name for cell in cells for name in _names(cell, classes)}
    places = _indices(sorted(names), classes)
    return tuple(
        None if cell in ("", str(UNKNOWN)) else Carried(frozenset(places[name] for name in _names(cell, classes)))
        for cell in cells
    )


def _names(cell: str, classes: Sequence[str]) -> list[str]:
    if cell in ("", str(UNKNOWN)):
        return []
    return listed(cell) if is_list(cell, classes) else [cell]


def _indices(names: Sequence[str], classes: Sequence[str]) -> dict[str, int]:
    return class_indices(names, classes) if names else {}


def _of_columns(
    row: Mapping[str, str], columns: Mapping[str, str], places: Mapping[str, int], line: int, where: Any
) -> Carried | None:
    marked: dict[str, bool | None] = {}
    for label, column in columns.items():
        text = row[column].casefold()
        if text not in _SAYS:
            raise BadInput(
                f"{where}: line {line} must say in column {column!r} whether the label is there: 1, 0, or nothing "
                f"where it is not known (-1 means the same), got {row[column]!r}"
            )
        marked[label] = _SAYS[text]
    if all(value is None for value in marked.values()):
        return None
    there, unsure = (
        frozenset(places[label] for label, value in marked.items() if value is wanted) for wanted in (True, None)
    )
    return Carried(there, unsure)
