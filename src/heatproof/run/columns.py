"""Units of work and records of shards as columns: what the parts of a run hold, row by row.

`unit` is the key of a unit of work, `row` the place of a picture in its shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from heatproof.questions import Question
from heatproof.run.census import ShardRecord

_CODE = pa.dictionary(pa.int32(), pa.string())
_NUMBERS = pa.list_(pa.float64())
SCORES = pa.schema(
    [
        ("unit", _CODE),
        ("image", pa.string()),
        ("value", pa.float64()),
        ("status", _CODE),
        ("note", _CODE),
        ("seconds", pa.float64()),
        ("machine", _CODE),
    ]
)
CURVES = pa.schema([("unit", _CODE), ("row", pa.int32()), ("x", _NUMBERS), ("y", _NUMBERS)])
DETAILS = pa.schema([("unit", _CODE), ("row", pa.int32()), ("detail", _CODE), ("value", pa.float64())])
PICTURES = pa.schema(
    [
        ("unit", _CODE),
        ("image", pa.string()),
        ("class", _CODE),
        ("right", pa.bool_()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("predicted", _CODE),
    ]
)
SCHEMAS = {"scores": SCORES, "curves": CURVES, "details": DETAILS, "pictures": PICTURES}


@dataclass(frozen=True)
class Unit:
    """The finished rows of shard × model × method × metric."""

    images: Sequence[str]
    values: Sequence[float | None]
    statuses: Sequence[str]
    notes: Sequence[str]
    seconds: float  # per image: explaining and scoring it
    x: Sequence[Sequence[float]] | None = None
    y: Sequence[Sequence[float]] | None = None
    details: Mapping[str, Sequence[float | None]] = field(default_factory=dict)  # further numbers per image
    machine: str = ""  # the kind of processor that computed it; rows of earlier versions do not say

    @property
    def failed(self) -> bool:
        return "failed" in self.statuses

    @property
    def numbers(self) -> int:
        """About how many numbers it holds."""
        curves = sum(map(len, chain(self.x or (), self.y or ())))
        return 8 * len(self.images) * (1 + len(self.details)) + curves


@dataclass(frozen=True, eq=False)
class UnitRows:
    """The rows of one unit in the tables of its parts."""

    scores: pa.Table
    curves: pa.Table
    details: pa.Table

    def unit(self) -> Unit:
        """The same as a unit."""
        at = {name: self.scores[name].to_pylist() for name in ("image", "value", "status", "note")}
        count = len(self.scores)
        first = self.scores.slice(0, 1).to_pylist()
        lines: dict[str, list[list[float]]] | None = None
        if len(self.curves):
            lines = {axis: [[] for _ in range(count)] for axis in "xy"}
            for row in self.curves.to_pylist():
                for axis, side in lines.items():
                    side[row["row"]] = row[axis]
        details: dict[str, list[float | None]] = {}
        for row in self.details.to_pylist():
            details.setdefault(row["detail"], [None] * count)[row["row"]] = row["value"]
        return Unit(
            at["image"],
            at["value"],
            at["status"],
            at["note"],
            first[0]["seconds"] if first else 0.0,
            None if lines is None else lines["x"],
            None if lines is None else lines["y"],
            details,
            first[0]["machine"] if first else "",
        )


def tables_of(units: Mapping[str, Unit]) -> dict[str, pa.Table]:
    """The scores, curves and details of some units by key."""
    every = units.values()
    scores = [
        _repeated(list(units), [len(unit.images) for unit in every]),
        [image for unit in every for image in unit.images],
        [value for unit in every for value in unit.values],
        [status for unit in every for status in unit.statuses],
        [note for unit in every for note in unit.notes],
        [unit.seconds for unit in every for _ in unit.images],
        [unit.machine for unit in every for _ in unit.images],
    ]
    return {"scores": _table(SCORES, scores), "curves": _curves(units), "details": _details(units)}


def rows_of(key: str, unit: Unit) -> UnitRows:
    """The rows of one unit."""
    return UnitRows(**tables_of({key: unit}))


def _curves(units: Mapping[str, Unit]) -> pa.Table:
    """One row per image that has a score and a curve."""
    rows = [
        (key, row, unit.x[row], unit.y[row])
        for key, unit in units.items()
        if unit.x is not None and unit.y is not None
        for row, value in enumerate(unit.values)
        if value is not None
    ]
    return _of_rows(CURVES, rows)


def _details(units: Mapping[str, Unit]) -> pa.Table:
    """One row per image and further number."""
    rows = [
        (key, row, name, value)
        for key, unit in units.items()
        for name, values in unit.details.items()
        for row, value in enumerate(values)
        if value is not None
    ]
    return _of_rows(DETAILS, rows)


def table_of_records(records: Iterable[ShardRecord]) -> pa.Table:
    """What the pictures of some shards are to their models."""
    rows = [
        (one.key, image, name, right, *span, predicted)
        for one in records
        for image, name, right, span, predicted in zip(
            one.ids, one.classes, one.right, one.spans, one.predicted or (None,) * len(one.ids), strict=True
        )
    ]
    return _of_rows(PICTURES, rows)


def record_of(key: str, question: Question, per_label: bool, rows: pa.Table) -> ShardRecord:
    """The record of one shard, from its rows."""
    at = {name: tuple(rows[name].to_pylist()) for name in PICTURES.names}
    spans = tuple(zip(at["low"], at["high"], strict=True))
    return ShardRecord(key, at["image"], at["class"], at["right"], spans, at["predicted"], question, per_label)


def _of_rows(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return _table(schema, [list(column) for column in zip(*rows, strict=True)] or [[] for _ in schema])


def _table(schema: pa.Schema, columns: Sequence[Any]) -> pa.Table:
    return pa.table([_column(column, one.type) for column, one in zip(columns, schema, strict=True)], schema=schema)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return pa.array(values, pa.string()).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(values, kind)


def _repeated(values: Sequence[str], counts: Sequence[int]) -> pa.Array:
    codes = np.repeat(np.arange(len(values), dtype=np.int32), counts)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values, pa.string()))
