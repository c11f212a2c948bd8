"""`groups.parquet`: which groups the pictures of a run fall into, one row per data set, picture and kind of groups."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from heatproof.data._support.picture_groups import groups_of
from heatproof.storage.atomic_file import write_atomically
from heatproof.types import Dataset

FILE = "groups.parquet"
SCHEMA = pa.schema([(name, pa.string()) for name in ("dataset", "image", "name", "kind", "value")])


def write_groups(root: Path, judged: Iterable[tuple[str, Dataset, tuple[str, ...]]]) -> dict[str, str]:
    """Write the groups of the pictures judged, (label, data set, ids) of each shard: the file and its hash.

    Where no data set declares any there is no file.
    """
    rows: dict[tuple[str, str, str], dict[str, str | None]] = {}
    known: dict[str, dict[str, tuple[str, dict[str, str | None]]]] = {}
    for label, dataset, ids in judged:
        if label not in known:
            known[label] = {
                name: (one.kind, dict(zip(dataset.ids(), one.labels, strict=True)))
                for name, one in groups_of(dataset).items()
            }
        for name, (kind, values) in known[label].items():
            for image in ids:
                row = {"dataset": label, "image": image, "name": name, "kind": kind, "value": values[image]}
                rows[label, image, name] = row
    if not rows:
        (root / FILE).unlink(missing_ok=True)
        return {}
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows.values()), schema=SCHEMA), buffer)
    write_atomically(root / FILE, buffer.getvalue())
    return {FILE: hashlib.sha256(buffer.getvalue()).hexdigest()}
