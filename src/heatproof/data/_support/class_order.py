"""Class names from sub-folders or a table that got their indices from the alphabet, since nothing else orders them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heatproof.data._support.carried import PREFIX, is_list, listed
from heatproof.data._support.class_names import are_indices
from heatproof.data._support.files import UNKNOWN
from heatproof.data.folder import Folder
from heatproof.data.masked_folder import MaskedFolder
from heatproof.data.table import Table, read_rows


def alphabetical(dataset: Any) -> tuple[str, ...]:
    """The names that are numbered alphabetically; empty if they contain an index or the classes are known."""
    if not isinstance(dataset, Folder | MaskedFolder | Table) or dataset.classes:
        return ()
    if all(file.label == UNKNOWN for file in dataset.files) and not (isinstance(dataset, Table) and dataset.several):
        return ()
    names = _labels_in(Path(dataset.path)) if isinstance(dataset, Table) else _folders(dataset)
    return () if are_indices(names) else tuple(sorted(names))


def _labels_in(table: Path) -> set[str]:
    rows = read_rows(table, ["path"])
    columns = {name.removeprefix(PREFIX).strip() for name in rows[0] if name.startswith(PREFIX)}
    cells = {row.get("label", "") for row in rows} - {"", str(UNKNOWN)}
    return columns or {name for cell in cells for name in (listed(cell) if is_list(cell) else [cell])}


def _folders(dataset: Folder | MaskedFolder) -> set[str]:
    inside = isinstance(dataset, MaskedFolder) and not dataset.masks
    home = Path(dataset.path, "images") if inside else Path(dataset.path)
    return {path.name for path in home.iterdir() if path.is_dir() and not path.name.startswith(".")}
