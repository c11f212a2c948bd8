"""A run's directory: units of work and records of shards in Parquet parts, and sealed files beside them.

What is put waits in memory until there is enough of it for a part, or until some time has passed; `flush` writes it at
once. Parts are never changed: several writers do each other no harm, and what is there twice counts once. Directories
of earlier versions, with one JSON file for each unit, are read as well.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from heatproof.run.census import ShardRecord
from heatproof.run.columns import Unit, UnitRows, rows_of
from heatproof.run.json_units import record_in, unit_file, unit_in
from heatproof.run.parts import Parts
from heatproof.storage import sealed_json
from heatproof.storage.atomic_file import NotWritable, StoreFull, content_of, leftovers, write_atomically

__all__ = ["NotWritable", "Store", "StoreFull", "Unit", "write_atomically"]

NUMBERS = 2**20  # that wait in memory at most
SOON, LATE = 2.0, 300.0  # seconds between two parts, at least and at most
SHARE = 0.02  # of the time spent so far: what a kill costs at most


@dataclass
class Store:
    """A run's directory."""

    root: Path
    damaged: list[str] = field(default_factory=list)
    _units: dict[str, Unit] = field(default_factory=dict)  # waiting to be written, as are the records
    _records: dict[str, ShardRecord] = field(default_factory=dict)
    _numbers: int = 0

    def __post_init__(self) -> None:
        self._began = self._flushed = time.monotonic()

    @cached_property
    def parts(self) -> Parts:
        return Parts(self.root, self.set_aside)

    def put(self, key: str, unit: Unit) -> None:
        self._units[key] = unit
        self._numbers += unit.numbers
        now = time.monotonic()
        pause = min(LATE, max(SOON, SHARE * (now - self._began)))
        if self._numbers >= NUMBERS or now - self._flushed >= pause:
            self.flush()

    def put_record(self, record: ShardRecord) -> None:
        self._records[record.key] = record

    def flush(self) -> None:
        """Write what is waiting."""
        if self._units or self._records:
            self.parts.write(self._units, self._records)
            self._units, self._records, self._numbers = {}, {}, 0
        self._flushed = time.monotonic()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """However the work ends, what was put is written."""
        try:
            yield
        finally:
            self.flush()

    def get(self, key: str, images: Sequence[str] | None = None) -> Unit | None:
        """The unit, or None if it is not there or cannot be trusted: damaged, another unit's, or of other images."""
        waiting = self._waiting(key, images)
        if waiting is not None:
            return waiting
        rows = self.parts.rows(key, images)
        return rows.unit() if rows is not None else self._in_json(key, images)

    def rows(self, key: str, images: Sequence[str]) -> UnitRows | None:
        """The same as columns."""
        if self._waiting(key, images) is None and (rows := self.parts.rows(key, images)) is not None:
            return rows
        unit = self.get(key, images)
        return None if unit is None else rows_of(key, unit)

    def values(self, key: str, images: Sequence[str]) -> Sequence[float | None] | None:
        """The scores alone."""
        if self._waiting(key, images) is None and (rows := self.parts.rows(key, images, ("scores",))) is not None:
            values: list[float | None] = rows.scores["value"].to_pylist()
            return values
        unit = self.get(key, images)
        return None if unit is None else unit.values

    def failed(self, key: str, images: Sequence[str]) -> bool | None:
        """Whether rows of a unit failed; None if it is not there. Of units in parts only footers are read."""
        waiting = self._waiting(key, images)
        if waiting is not None:
            return waiting.failed
        if (known := self.parts.known(key, images)) is not None:
            return known.failed
        unit = self._in_json(key, images)
        return None if unit is None else unit.failed

    def has_record(self, key: str) -> bool:
        return key in self._records or self.parts.has_record(key) or self.record(key) is not None

    def record(self, key: str) -> ShardRecord | None:
        """What the pictures of a shard are to its model, or None if that is not there or cannot be trusted."""
        if key in self._records:
            return self._records[key]
        return self.parts.record(key) or record_in(self.get_json(f"shards/{key[:2]}/{key}.json"), key)

    def check(self, units: Iterable[tuple[str, Sequence[str]]], shards: Iterable[str]) -> bool:
        """Whether the parts of these units and shards are sound; those that are not are set aside."""
        return self.parts.check(units, shards)

    def _waiting(self, key: str, images: Sequence[str] | None) -> Unit | None:
        unit = self._units.get(key)
        return unit if unit is not None and (images is None or list(unit.images) == list(images)) else None

    def _in_json(self, key: str, images: Sequence[str] | None) -> Unit | None:
        path = unit_file(self.root, key)
        try:
            payload = content_of(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        unit = unit_in(payload, key)
        if unit is None:
            self.set_aside(path)
        return unit if unit is not None and (images is None or list(unit.images) == list(images)) else None

    def set_aside(self, path: Path) -> None:
        """Name a damaged file and move it out of the way."""
        self.damaged.append(path.name)
        with suppress(OSError):
            path.rename(path.with_suffix(".damaged"))

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

    def clear_leftovers(self) -> None:
        """Remove what writes that never finished left behind; only who holds the directory may."""
        for path in [*leftovers(self.root), *self.parts.unused()]:
            path.unlink(missing_ok=True)
