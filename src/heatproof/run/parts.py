"""The parts of a run: which units are in which Parquet file, and their rows.

A unit's scores, curves and details lie in three files that are written together. The one with the scores comes last
and names the others, so that a unit is there wholly or not at all. To know what is there only footers are read. A part
whose content is damaged is set aside when it is read, and its units count as not there.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from heatproof.questions import Question
from heatproof.run.census import ShardRecord
from heatproof.run.columns import SCHEMAS, Unit, UnitRows, record_of, table_of_records, tables_of
from heatproof.storage import part
from heatproof.storage.sealed_json import Damaged, typed

FOLDER = "parts"
UNIT_KINDS = ("scores", "curves", "details")
_EMPTY = {kind: SCHEMAS[kind].empty_table() for kind in UNIT_KINDS}
HELD = 2**27  # bytes of unpacked parts that are held in memory
Beside = Annotated[str, msgspec.Meta(pattern=r"^(curves|details)-[0-9a-f]{64}\.parquet$")]


@dataclass(frozen=True)
class Notes:
    """What the footer of a part says: which units it holds, or which shards' pictures."""

    written: float  # in seconds since 1970
    beside: tuple[Beside, ...] = ()  # the parts with the curves and details of these units
    units: tuple[tuple[str, str, bool], ...] = ()  # key, hash of the picture ids, whether it failed
    shards: tuple[tuple[str, Question, bool], ...] = ()  # key, what the model is asked, whether rows are labels


class Known(NamedTuple):
    """Where a unit is."""

    part: str
    ids: str
    failed: bool
    written: float


class Held(NamedTuple):
    """The rows of a part, and from where to where each unit's go."""

    table: pa.Table
    spans: Mapping[str, tuple[int, int]]

    def of(self, key: str) -> pa.Table:
        start, stop = self.spans.get(key, (0, 0))
        return self.table.slice(start, stop - start)


class Parts:
    """The folder of parts of a run directory. `set_aside` moves a damaged file out of the way and names it."""

    def __init__(self, root: Path, set_aside: Callable[[Path], None]) -> None:
        self.folder = root / FOLDER
        self._set_aside = set_aside
        self._units: dict[str, tuple[Known, ...]] = {}
        self._shards: dict[str, tuple[str, Question, bool]] = {}
        self._notes: dict[str, Notes] = {}
        self._sound: set[str] = set()
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._read_footers()

    def _read_footers(self) -> None:
        """Enter the parts that are not known yet."""
        names = sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []
        for name in names:
            if part.kind_of(name) not in ("scores", "pictures") or name in self._notes:
                continue
            try:
                notes = typed(Notes, part.notes_of(self.folder / name), name)
                if lost := set(notes.beside).difference(names):
                    raise Damaged(f"{name} has lost {', '.join(lost)}")
            except Damaged:
                self._set_aside(self.folder / name)
            else:
                self._enter(name, notes)

    def _enter(self, name: str, notes: Notes) -> None:
        self._notes[name] = notes
        for key, ids, failed in notes.units:
            self._units[key] = (*self._units.get(key, ()), Known(name, ids, failed, notes.written))
        for key, question, per_label in notes.shards:
            self._shards[key] = (name, question, per_label)

    def write(self, units: Mapping[str, Unit], records: Mapping[str, ShardRecord]) -> None:
        """Write units and records by key; they count when all files are there."""
        now = time.time()
        if records:
            shards = tuple((key, one.question, one.per_label) for key, one in records.items())
            self._write("pictures", table_of_records(records.values()), Notes(now, shards=shards))
        if units:
            tables = tables_of(units)
            beside = tuple(
                self._write(kind, tables[kind], Notes(now)) for kind in ("curves", "details") if len(tables[kind])
            )
            about = tuple((key, ids_hash(tuple(unit.images)), unit.failed) for key, unit in units.items())
            self._write("scores", tables["scores"], Notes(now, beside, about))

    def _write(self, kind: str, table: pa.Table, notes: Notes) -> str:
        name = part.write(self.folder, kind, table, msgspec.to_builtins(notes))
        self._enter(name, notes)
        return name

    def known(self, key: str, images: Sequence[str] | None = None) -> Known | None:
        """The best unit of this key on these pictures: one without failures, else the newest."""
        ids = None if images is None else ids_hash(tuple(images))
        found = [one for one in self._units.get(key, ()) if ids in (None, one.ids)]
        return min(found, key=lambda one: (one.failed, -one.written), default=None)

    def rows(
        self, key: str, images: Sequence[str] | None = None, kinds: Collection[str] = UNIT_KINDS
    ) -> UnitRows | None:
        """The rows of a unit, of these kinds; None if it is not there, or damaged."""
        while (known := self.known(key, images)) is not None:
            names = [known.part, *self._notes[known.part].beside]
            held = {kind: self._rows_of(name, known.part) for name in names if (kind := part.kind_of(name)) in kinds}
            found = {kind: one.of(key) for kind, one in held.items() if one is not None}
            if len(found) == len(held):
                return UnitRows(**{**_EMPTY, **found})
        return None

    def has_record(self, key: str) -> bool:
        return key in self._shards

    def record(self, key: str) -> ShardRecord | None:
        """What a shard's pictures are to its model; None if that is not there, or damaged."""
        if key not in self._shards:
            return None
        name, question, per_label = self._shards[key]
        held = self._rows_of(name, name)
        return None if held is None else record_of(key, question, per_label, held.of(key))

    def check(self, units: Iterable[tuple[str, Sequence[str]]], shards: Iterable[str]) -> bool:
        """Whether the parts of these units and shards are sound. Each is read through once; others are set aside."""
        heads = {known.part for key, images in units if (known := self.known(key, images)) is not None}
        heads |= {self._shards[key][0] for key in shards if key in self._shards}
        sound = True
        for head in sorted(heads):
            for name in (head, *self._notes[head].beside):
                if name not in self._sound and not part.is_sound(self.folder / name):
                    self._drop(name, head)
                    sound = False
                    break
                self._sound.add(name)
        return sound

    def unused(self) -> list[Path]:
        """Files of curves or details whose scores were never written."""
        self._read_footers()  # another run may have written some since
        used = {name for notes in self._notes.values() for name in notes.beside}
        every = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return [path for path in every if part.kind_of(path.name) in ("curves", "details") and path.name not in used]

    def _rows_of(self, name: str, head: str) -> Held | None:
        """The rows of a part, from memory if they are there; None if it is damaged."""
        if name in self._held:
            self._held.move_to_end(name)
            return self._held[name]
        try:
            table = part.read(self.folder / name, SCHEMAS[part.kind_of(name)])
        except Damaged:
            self._drop(name, head)
            return None
        self._sound.add(name)
        self._held[name] = Held(table, _spans(table))
        while len(self._held) > 1 and sum(one.table.nbytes for one in self._held.values()) > HELD:
            self._held.popitem(last=False)
        return self._held[name]

    def _drop(self, name: str, head: str) -> None:
        """Set a damaged file aside; what it belonged to counts no more."""
        self._set_aside(self.folder / name)
        if name != head and (self.folder / head).exists():
            (self.folder / head).unlink()
        notes = self._notes.pop(head, None)
        for key, _, _ in notes.units if notes else ():
            self._units[key] = tuple(one for one in self._units[key] if one.part != head)
        for key, _, _ in notes.shards if notes else ():
            self._shards.pop(key)


@lru_cache(2048)
def ids_hash(images: tuple[str, ...]) -> str:
    """A short hash of picture ids in their order."""
    return hashlib.sha256("\0".join(images).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _spans(table: pa.Table) -> dict[str, tuple[int, int]]:
    """From where to where the rows of each unit go."""
    column = table["unit"].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else SCHEMAS["scores"].empty_table()["unit"].combine_chunks()
    codes = column.indices.to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    names = column.dictionary.take(pa.array(codes[starts])).to_pylist()
    return dict(zip(names, zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True), strict=True))
