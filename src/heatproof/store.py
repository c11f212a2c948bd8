"""Rows on disk, one small file per unit of work, wholly there or not there.

A unit file is a line with the SHA-256 of what follows, then JSON. It is written beside and renamed into place, so that
Ctrl-C, kill -9 or a full disk leave whole units only; one that does not match its own hash is set aside, named, and
computed again. `compact` gathers units into two tables: scores.parquet and curves.parquet.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from heatproof.errors import HeatproofError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

SCORES = ("dataset", "model", "method", "metric", "image", "value", "status", "note", "seconds")
CURVES = ("dataset", "model", "method", "metric", "image", "x", "y")


class StoreFull(HeatproofError):
    """Nothing more can be written; everything finished so far is safe."""


class NotWritable(HeatproofError, OSError):
    """A place where no file can be put."""


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

    @property
    def failed(self) -> bool:
        return "failed" in self.statuses


def write_atomically(path: Path, payload: bytes) -> None:
    """The whole file or none of it, also across a power cut."""
    beside = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("xb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(
                f"no space left for {path}: everything finished is safe; free some space and run the same command again"
            ) from error
        raise NotWritable(f"{path} cannot be written ({error.strerror}): choose another place for it") from error
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@dataclass
class Store:
    """A run's directory."""

    root: Path
    damaged: list[str] = field(default_factory=list)

    def _path(self, key: str) -> Path:
        return self.root / "units" / key[:2] / f"{key}.json"

    def put(self, key: str, unit: Unit) -> None:
        body = json.dumps(unit.__dict__, allow_nan=False).encode()
        write_atomically(self._path(key), hashlib.sha256(body).hexdigest().encode() + b"\n" + body)

    def get(self, key: str) -> Unit | None:
        """The unit, or None if it is not there or cannot be trusted."""
        path = self._path(key)
        try:
            seal, _, body = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if seal.decode("ascii", "replace") == hashlib.sha256(body).hexdigest():
            return Unit(**json.loads(body))
        self.damaged.append(path.name)
        path.replace(path.with_suffix(".damaged"))
        return None

    def put_json(self, name: str, value: Any) -> None:
        write_atomically(self.root / name, json.dumps(value, indent=1).encode())

    def get_json(self, name: str) -> Any:
        """The value, or None if it is not there or is not JSON."""
        try:
            return json.loads((self.root / name).read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """One process at a time, where the system can tell."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / f".{what}.lock").open("w") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed, also by kill -9
            yield

    def put_arrays(self, name: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        import io

        buffer = io.BytesIO()
        np.savez_compressed(buffer, **dict(arrays))  # type: ignore[arg-type]
        write_atomically(self.root / name, buffer.getvalue())

    def compact(self, places: Iterable[tuple[Mapping[str, str], Unit]]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Gather units, each with its dataset, model, method and metric, into the two tables and write them."""
        rows: list[dict[str, Any]] = []
        curves: list[dict[str, Any]] = []
        for place, unit in places:
            for i, image in enumerate(unit.images):
                value = unit.values[i]
                rows.append(
                    {**place, "image": image, "value": float("nan") if value is None else value}
                    | {"status": unit.statuses[i], "note": unit.notes[i], "seconds": unit.seconds}
                )
                if unit.x is not None and unit.y is not None and value is not None:
                    curves.append({**place, "image": image, "x": unit.x[i], "y": unit.y[i]})
        scores = pd.DataFrame(rows, columns=list(SCORES))
        lines = pd.DataFrame(curves, columns=list(CURVES))
        for name, table in (("scores.parquet", scores), ("curves.parquet", lines)):
            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pandas(table, schema=_SCHEMAS[name], preserve_index=False), sink)
            write_atomically(self.root / name, sink.getvalue().to_pybytes())
        return scores, lines


_TEXT = [(name, pa.string()) for name in ("dataset", "model", "method", "metric", "image")]
_SCHEMAS = {
    "scores.parquet": pa.schema(
        [*_TEXT, ("value", pa.float64()), ("status", pa.string()), ("note", pa.string()), ("seconds", pa.float64())]
    ),
    "curves.parquet": pa.schema([*_TEXT, ("x", pa.list_(pa.float64())), ("y", pa.list_(pa.float64()))]),
}
