"""A CSV table of pictures: `path,label[,mask]`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heatproof.data.class_names import class_indices
from heatproof.data.files import UNKNOWN, PictureFile, absolute, as_view, digest, pick, read_batch
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.types import Batch, View

_MOST = 10**9  # classes; a larger label is a number of something else


def read_rows(path: Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file by column name, or `BadInput`; a spreadsheet's byte-order mark is no part of a
    name."""
    if not path.is_file():
        raise BadInput(f"there is no table {path}")
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, restkey="", restval="")
            header = [(name or "").strip() for name in reader.fieldnames or ()]
            reader.fieldnames = header
            rows = [{name: str(value or "").strip() for name, value in row.items()} for row in reader]
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path} must be a CSV file in UTF-8, got: {error}") from error
    absent = [name for name in needed if name not in header]
    if absent:
        raise BadInput(
            f"{path} must have a column {absent[0]!r} in its first line, got {', '.join(header) or 'nothing'}"
        )
    if not rows:
        raise BadInput(f"{path} has a header and no rows: add one row per picture")
    return rows


def list_table(path: Path, classes: Sequence[str] = ()) -> tuple[PictureFile, ...]:
    """The pictures of a table in its order; paths are relative to the table's folder."""
    rows = read_rows(path, ["path"])
    masked = [bool(row.get("mask")) for row in rows]
    if any(masked) and not all(masked):
        line = masked.index(False) + 2
        raise BadInput(f"{path}: line {line} has no mask while others have: give every row one, or none")
    labels = _labels([row.get("label", "") for row in rows], classes, path)
    files: list[PictureFile] = []
    seen: dict[str, int] = {}
    for line, (row, label) in enumerate(zip(rows, labels, strict=True), start=2):
        if not row["path"]:
            raise BadInput(f"{path}: line {line} has no path")
        identity = row["path"].replace("\\", "/")
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] > 1:  # listed again on purpose, perhaps with another label
            identity = f"{identity}#{seen[identity]}"
        mask = _beside(path, row["mask"]) if row.get("mask") else None
        files.append(PictureFile(identity, _beside(path, row["path"]), label, mask))
    return tuple(files)


def _beside(table: Path, name: str) -> Path:
    return table.parent / Path(name.replace("\\", "/")).expanduser()


def _labels(texts: list[str], classes: Sequence[str], path: Path) -> list[int]:
    given = [text for text in texts if text not in ("", str(UNKNOWN))]
    try:
        indices = {text: int(text) for text in given}
    except ValueError:
        indices = class_indices(sorted(set(given)), classes)
    for text, index in indices.items():
        if not 0 <= index < (len(classes) or _MOST):
            last = f" … {len(classes) - 1}" if classes else " or more"
            raise BadInput(f"{path}: a label must be 0{last}, a class name or empty, got {text!r}")
    return [indices.get(text, UNKNOWN) for text in texts]


@dataset
@dataclass(frozen=True)
class Table:
    """Pictures listed in a CSV file with the columns `path`, `label` and, if there are any, `mask`.

    Paths are relative to the table. A label is an index, a class name, or empty where it is not known.
    """

    path: str = ""
    view: View | None = None
    classes: tuple[str, ...] = ()
    grey: bool = False  # in one channel, for models that look at no more

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", as_view(self.view))
        object.__setattr__(self, "path", absolute(self.path))

    @property
    def name(self) -> str:
        return Path(self.path).stem if self.path else "table"

    @cached_property
    def files(self) -> tuple[PictureFile, ...]:
        if not self.path:
            raise BadInput("the data set 'table' needs a path: table(path='pictures.csv')")
        return list_table(Path(self.path).expanduser(), self.classes)

    def __len__(self) -> int:
        return len(self.files)

    def ids(self) -> tuple[str, ...]:
        return tuple(file.id for file in self.files)

    def class_labels(self) -> tuple[int, ...]:
        return tuple(file.label for file in self.files)

    def batch(self, indices: Sequence[int], /) -> Batch:
        return read_batch(pick(self.files, indices), self.view, masked=self.files[0].mask is not None, grey=self.grey)

    def digest(self, indices: Sequence[int], /) -> str:
        return digest(pick(self.files, indices), self.grey)
