"""Rows on disk, one small file per unit of work, wholly there or not there.

A unit file is a line with the SHA-256 of what follows, then JSON that begins with the unit's key. One that is damaged,
or that stands in another one's place, is set aside, named, and computed again. `write_tables` gathers units into three
tables, a few at a time.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heatproof.storage import sealed_json
from heatproof.storage.atomic_file import NotWritable, StoreFull, atomic_writer, content_of, leftovers, write_atomically

__all__ = ["NotWritable", "Store", "StoreFull", "Unit", "write_atomically"]

_PLACE = [(name, pa.string()) for name in ("dataset", "model", "method", "metric", "image")]
SCHEMAS = {
    "scores.parquet": pa.schema(
        [
            *_PLACE,
            ("value", pa.float64()),
            ("status", pa.string()),
            ("note", pa.string()),
            ("seconds", pa.float64()),
            ("machine", pa.string()),
        ]
    ),
    "curves.parquet": pa.schema([*_PLACE, ("x", pa.list_(pa.float64())), ("y", pa.list_(pa.float64()))]),
    "details.parquet": pa.schema([*_PLACE, ("detail", pa.string()), ("value", pa.float64())]),
}
GROUP = 10_000  # rows held in memory while tables are written


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


Place = Mapping[str, str]  # dataset, model, method and metric of a unit


@dataclass
class Store:
    """A run's directory."""

    root: Path
    damaged: list[str] = field(default_factory=list)

    def unit_path(self, key: str) -> Path:
        return self.root / "units" / key[:2] / f"{key}.json"

    def put(self, key: str, unit: Unit) -> None:
        body = json.dumps({"key": key, **asdict(unit)}, allow_nan=False).encode()
        write_atomically(self.unit_path(key), hashlib.sha256(body).hexdigest().encode() + b"\n" + body)

    def get(self, key: str, images: Sequence[str] | None = None) -> Unit | None:
        """The unit, or None if it is not there or cannot be trusted: damaged, another unit's, or of other images."""
        path = self.unit_path(key)
        try:
            payload = content_of(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        unit = unit_in(payload, key)
        if unit is not None and (images is None or list(unit.images) == list(images)):
            return unit
        self.set_aside(path)
        return None

    def set_aside(self, path: Path) -> None:
        """Name a damaged file and move it out of the way."""
        self.damaged.append(path.name)
        with suppress(OSError):
            path.replace(path.with_suffix(".damaged"))

    def put_json(self, name: str, value: Mapping[str, Any]) -> None:
        write_atomically(self.root / name, sealed_json.written(value))

    def get_json(self, name: str) -> dict[str, Any] | None:
        """The value, or None if it is not there or cannot be trusted."""
        path = self.root / name
        try:
            return sealed_json.read(content_of(path), path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except sealed_json.Damaged:
            self.set_aside(path)
            return None

    def put_arrays(self, name: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **dict(arrays))  # type: ignore[arg-type]
        write_atomically(self.root / name, buffer.getvalue())

    def write_tables(self, units: Iterable[tuple[Place, Unit]]) -> dict[str, str]:
        """Gather units into the tables; the hash of each. Memory does not grow with the run."""
        with ExitStack() as files:
            sinks = {name: files.enter_context(atomic_writer(self.root / name)) for name in SCHEMAS}
            with ExitStack() as open_tables:
                tables = [open_tables.enter_context(_Table(sinks[name], SCHEMAS[name])) for name in SCHEMAS]
                for place, unit in units:
                    for table, rows in zip(tables, (_rows, _curves, _details), strict=True):
                        table.extend(rows(place, unit))
            return {name: sink.sha256 for name, sink in sinks.items()}

    def clear_leftovers(self) -> None:
        """Remove what writes that never finished left behind; only who holds the directory may."""
        for path in list(leftovers(self.root)):
            path.unlink(missing_ok=True)


class _Table:
    """A Parquet file that is written a group of rows at a time."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema)
        self._schema = schema
        self._rows: list[dict[str, Any]] = []

    def extend(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows.extend(rows)
        if len(self._rows) >= GROUP:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._flush()
            self._writer.close()
        self._writer.is_open = False  # else it would write its end into a file that is closed


def unit_in(payload: bytes, key: str) -> Unit | None:
    """What a unit file holds, if it is sound and this unit's."""
    seal, _, body = payload.partition(b"\n")
    if seal.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
        return None
    held = json.loads(body)
    if not isinstance(held, dict) or held.pop("key", None) != key:
        return None
    return Unit(**held) if {"machine", *held} == {f.name for f in fields(Unit)} else None


def _rows(place: Place, unit: Unit) -> Iterator[dict[str, Any]]:
    for image, value, status, note in zip(unit.images, unit.values, unit.statuses, unit.notes, strict=True):
        worth = float("nan") if value is None else value
        about = {"status": status, "note": note, "seconds": unit.seconds, "machine": unit.machine}
        yield {**place, "image": image, "value": worth, **about}


def _curves(place: Place, unit: Unit) -> Iterator[dict[str, Any]]:
    """One row per image that has a score and a curve."""
    if unit.x is None or unit.y is None:
        return
    for image, value, x, y in zip(unit.images, unit.values, unit.x, unit.y, strict=True):
        if value is not None:
            yield {**place, "image": image, "x": x, "y": y}


def _details(place: Place, unit: Unit) -> Iterator[dict[str, Any]]:
    """One row per image and further number."""
    for name, values in unit.details.items():
        for image, value in zip(unit.images, values, strict=True):
            if value is not None:
                yield {**place, "image": image, "detail": name, "value": value}
