"""Repeats: random methods explain a few pictures again under other seeds, so that their luck can be measured.

A repeat changes the dice of the method alone: its maps are judged as the study's own are. The scores stand in
`repeats.parquet`, beside those of the study, and take no part in rankings or tests.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from heatproof.run.columns import Unit
from heatproof.run.unit import Explained
from heatproof.spec.study import Study
from heatproof.storage.atomic_file import write_atomically
from heatproof.traits import is_random, method_traits
from heatproof.types import AnyMethod, Batch, keyed_seed

FILE = "repeats.parquet"
MOST = 5  # pictures of each data set and model,
PART = 8  # and no more than one in so many: two repeats make random methods a quarter dearer at most
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("dataset", "model", "method", "metric", "image")),
        ("repeat", pa.int64()),
        ("value", pa.float64()),
    ]
)


def repeated_pictures(count: int) -> int:
    """How many of so many pictures are explained again."""
    return min(MOST, count // PART)


def repeated_methods(study: Study) -> list[AnyMethod]:
    """The methods whose luck is measured: random ones, but for controls."""
    if not study.repeats:
        return []
    return [one for one in study.methods if is_random(one) and not method_traits(one).control]  # type: ignore[misc]


def other_dice(batch: Batch, repeat: int) -> Batch:
    """The batch with the seed of a repeat; 0 is the study's own."""
    return batch if not repeat else dataclasses.replace(batch, seed=keyed_seed(batch.seed, "repeat", repeat))


def judged_alike(explained: Explained, batch: Batch) -> Explained:
    """Maps that were drawn by other dice, put before the metrics as those of the batch: these keep their own dice."""
    attribution = explained.attribution
    if attribution is None:
        return explained
    same = batch if len(explained.rows) == len(batch) else batch.select(explained.rows)
    return dataclasses.replace(explained, attribution=dataclasses.replace(attribution, batch=same))


def write_repeats(root: Path, units: Iterable[tuple[Mapping[str, str], int, Unit]]) -> dict[str, str]:
    """Write the scores of all repeats, (place, repeat, unit) each: the file and its hash. Without any there is none."""
    rows = [
        {**place, "image": image, "repeat": repeat, "value": value}
        for place, repeat, unit in units
        for image, value in zip(unit.images, unit.values, strict=True)
        if value is not None
    ]
    if not rows:
        (root / FILE).unlink(missing_ok=True)
        return {}
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), buffer)
    write_atomically(root / FILE, buffer.getvalue())
    return {FILE: hashlib.sha256(buffer.getvalue()).hexdigest()}
