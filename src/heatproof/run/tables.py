"""The tables of a run: the rows of its units with their places, gathered a few thousand at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from heatproof.run.store import Store
from heatproof.storage.atomic_file import atomic_writer

PLACE = ("dataset", "model", "method", "metric")
_PLACE = [(name, pa.string()) for name in (*PLACE, "image")]
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
Place = Mapping[str, str]  # dataset, model, method and metric of a unit


def write_tables(store: Store, wanted: Iterable[tuple[Place, str, Sequence[str]]]) -> dict[str, str]:
    """Gather the units of these places, keys and pictures into the tables; the hash of each."""
    with ExitStack() as files:
        sinks = {name: files.enter_context(atomic_writer(store.root / name)) for name in SCHEMAS}
        with ExitStack() as open_tables:
            tables = [open_tables.enter_context(_Table(sinks[name], SCHEMAS[name])) for name in SCHEMAS]
            for place, key, images in wanted:
                if (rows := store.rows(key, images)) is not None:
                    for table, part in zip(tables, (rows.scores, rows.curves, rows.details), strict=True):
                        table.extend(place, images, part)
        return {name: sink.sha256 for name, sink in sinks.items()}


class _Table:
    """A Parquet file that is written a group of rows at a time."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema)
        self._schema = schema
        self._parts: list[pa.Table] = []
        self._places: list[tuple[str, ...]] = []
        self._rows = 0

    def extend(self, place: Place, images: Sequence[str], rows: pa.Table) -> None:
        if not len(rows):
            return
        if "row" in rows.column_names:
            rows = rows.append_column("image", pa.array(images, pa.string()).take(rows["row"]))
        self._parts.append(rows.select([name for name in self._schema.names if name not in PLACE]))
        self._places.append(tuple(place[name] for name in PLACE))
        self._rows += len(rows)
        if self._rows >= GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._parts:
            own = pa.concat_tables(self._parts)
            at = np.repeat(np.arange(len(self._parts)), [len(one) for one in self._parts])
            columns = {
                name: pa.array(values, pa.string()).take(pa.array(at))
                for name, values in zip(PLACE, zip(*self._places, strict=True), strict=True)
            }
            columns |= {
                field.name: own[field.name].cast(field.type) for field in self._schema if field.name not in columns
            }
            if "value" in columns:  # no score is written as not a number
                columns["value"] = pc.fill_null(columns["value"], float("nan"))
            self._writer.write_table(pa.table(columns, schema=self._schema))
        self._parts, self._places, self._rows = [], [], 0

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._flush()
            self._writer.close()
        self._writer.is_open = False  # else it would write its end into a file that is closed
