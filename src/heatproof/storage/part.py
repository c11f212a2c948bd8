"""Parts: immutable Parquet files with sealed notes in the footer, each named by the hash of its content.

A name that is a checksum makes damage visible and copies harmless, and two writers never write the same file with
different content. What a part holds can be listed from its footer; its rows are checked when they are read.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from heatproof.storage import sealed_json
from heatproof.storage.atomic_file import content_of, sha256_of, write_atomically

NOTES = "heatproof"  # the key of the notes in the footer
NAME = re.compile(r"(?P<kind>[a-z]+)-(?P<hash>[0-9a-f]{64})\.parquet")
LARGEST = 2**30  # bytes that a part may unpack to; those of a run have some ten million


def write(folder: Path, kind: str, table: pa.Table, notes: Mapping[str, Any]) -> str:
    """Write a part; its name."""
    buffer = io.BytesIO()
    # Without Arrow's own copy of the schema, so that other readers see plain columns.
    with pq.ParquetWriter(buffer, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({NOTES: json.dumps(_sealed(notes))})
    name = f"{kind}-{hashlib.sha256(buffer.getvalue()).hexdigest()}.parquet"
    write_atomically(folder / name, buffer.getvalue())
    return name


def notes_of(path: Path) -> dict[str, Any]:
    """The notes in a part's footer; its rows are not read."""
    if not path.is_file():  # a pipe would block
        raise sealed_json.Damaged(f"{path} is no file")
    try:
        with path.open("rb") as file:
            return _notes(pq.read_metadata(file), path)
    except (OSError, pa.ArrowException) as error:
        raise sealed_json.Damaged(f"{path} cannot be read ({error})") from error


def read(path: Path, schema: pa.Schema) -> pa.Table:
    """The rows of a part, in these columns; `Damaged` unless its content is what its name promises."""
    try:
        payload = content_of(path)
        if _promised(path) != hashlib.sha256(payload).hexdigest():
            raise sealed_json.Damaged(f"{path} is damaged: its content does not match its name")
        whole = pq.ParquetFile(pa.BufferReader(payload), read_dictionary=_coded(schema))
        groups = [whole.metadata.row_group(at) for at in range(whole.metadata.num_row_groups)]
        if max(sum(one.total_byte_size for one in groups), 8 * whole.metadata.num_rows) > LARGEST:
            raise sealed_json.Damaged(f"{path} unpacks to more than {LARGEST / 2**20:.0f} MB")
        return whole.read().select(schema.names).cast(schema)
    except (OSError, ValueError, LookupError, pa.ArrowException) as error:
        if isinstance(error, sealed_json.Damaged):
            raise
        raise sealed_json.Damaged(f"{path} cannot be read ({error})") from error


def is_sound(path: Path) -> bool:
    """Whether a part's content is what its name promises."""
    try:
        return path.is_file() and sha256_of(path) == _promised(path)
    except OSError:
        return False


def kind_of(name: str) -> str:
    """The kind of a part, from its name; empty if it is no part's."""
    found = NAME.fullmatch(name)
    return found["kind"] if found else ""


def _promised(path: Path) -> str:
    found = NAME.fullmatch(path.name)
    return found["hash"] if found else ""


def _coded(schema: pa.Schema) -> Sequence[str]:
    return [field.name for field in schema if pa.types.is_dictionary(field.type)]


def _sealed(notes: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(sealed_json.written(notes))  # type: ignore[no-any-return]


def _notes(metadata: Any, path: Path) -> dict[str, Any]:
    stored = (metadata.metadata or {}).get(NOTES.encode())
    if stored is None:
        raise sealed_json.Damaged(f"{path} has no notes in its footer")
    return sealed_json.read(stored, path)
