"""`pictures.parquet`: what each picture of a run is to each model: its label, the answer, and whether it is right."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from heatproof.run.census import ShardRecord
from heatproof.storage.atomic_file import write_atomically

FILE = "pictures.parquet"
SCHEMA = pa.schema(
    [*((name, pa.string()) for name in ("dataset", "model", "image", "label", "predicted")), ("right", pa.bool_())]
)


def write_pictures(root: Path, records: Iterable[tuple[Mapping[str, str], ShardRecord | None]]) -> dict[str, str]:
    """Write one row per data set, model and picture, from the records of the shards: the file and its hash.

    `right` is empty where the label or its place among the model's classes is not known.
    """
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for place, found in records:
        if found is None:
            continue
        answers = found.predicted or (None,) * len(found.ids)
        for image, label, predicted, right in zip(found.ids, found.classes, answers, found.right, strict=True):
            row = {**place, "image": image, "label": label, "predicted": predicted, "right": right}
            rows.setdefault((place["dataset"], place["model"], image), row)
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows.values()), schema=SCHEMA), buffer)
    write_atomically(root / FILE, buffer.getvalue())
    return {FILE: hashlib.sha256(buffer.getvalue()).hexdigest()}
