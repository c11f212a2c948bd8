"""Tables of a run as data frames. In very long ones texts that repeat are categories, each held once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from heatproof.results import run_state
from heatproof.storage import sealed_json

MANY = 1_000_000  # rows; texts of fewer take some hundred MB at most
TEXTS = ["dataset", "model", "method", "metric", "image", "machine", "detail"]


def read_table(root: Path, name: str, files: Mapping[str, str]) -> pd.DataFrame:
    """One of the committed tables of a run."""
    with run_state.opened(root, name, files) as file:
        try:
            stored = pq.ParquetFile(file)
            if stored.metadata.num_rows > MANY:
                stored = pq.ParquetFile(file, read_dictionary=[name for name in TEXTS if name in stored.schema.names])
            # Column by column, each given back when it is converted: both forms at once would be twice the memory.
            table: pd.DataFrame = stored.read().to_pandas(split_blocks=True, self_destruct=True)
        except (OSError, pa.ArrowException) as error:
            raise sealed_json.Damaged(f"{root / name} cannot be read ({error}): {run_state.AGAIN}") from error
    return table


def as_text(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows without categories."""
    coded = [name for name in rows if isinstance(rows[name].dtype, pd.CategoricalDtype)]
    return rows.astype({name: rows[name].cat.categories.dtype for name in coded}) if coded else rows
