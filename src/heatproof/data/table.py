"""A CSV table of pictures: `path,label[,mask or box]`, or several labels per picture."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heatproof.data._support.carried import PREFIX, Carried, carried, indicators, is_list, listed
from heatproof.data._support.class_names import are_indices, class_indices
from heatproof.data._support.files import UNKNOWN, PictureFile
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.picture_groups import Grouping, by_class
from heatproof.data._support.regions import Boxes, Corners
from heatproof.errors import BadInput
from heatproof.registry import dataset

GROUP = "group:"  # prefix of columns that group pictures
_MOST = 10**9  # classes; a larger number is no class index


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
    masked = [bool(row.get("mask") or row.get("box")) for row in rows]
    if any(masked) and not all(masked):
        line = masked.index(False) + 2
        raise BadInput(f"{path}: line {line} has no mask while others have: give every row a mask or a box, or none")
    both = [line for line, row in enumerate(rows, start=2) if row.get("mask") and row.get("box")]
    if both:
        raise BadInput(f"{path}: line {both[0]} has a mask and a box: keep the one that is the region")
    labels = _labels([row.get("label", "") for row in rows], classes, path)
    files: list[PictureFile] = []
    lines: dict[str, list[int]] = {}  # the lines that list each picture
    for line, (row, label) in enumerate(zip(rows, labels, strict=True), start=2):
        if not row["path"]:
            raise BadInput(f"{path}: line {line} has no path")
        identity = row["path"].replace("\\", "/")
        mask: Path | Boxes | None = _beside(path, row["mask"]) if row.get("mask") else None
        if row.get("box"):
            mask = Boxes((corners(row["box"], f"{path}: line {line}"),))
        for other in lines.setdefault(identity, []):
            if files[other - 2][2:4] == (label, mask):
                raise BadInput(
                    f"{path}: lines {other} and {line} list {row['path']} with the same label, and a picture counted "
                    "twice makes every interval too narrow: remove one"
                )
        lines[identity].append(line)
        if len(lines[identity]) > 1:  # listed again with another label or mask: two entries of one picture
            identity = f"{identity}#{len(lines[identity])}"
        files.append(PictureFile(identity, _beside(path, row["path"]), label, mask))
    if not any(_is_there(file.path) for file in files):
        raise BadInput(
            f"{path}: none of its {len(files)} pictures is there, the first being {files[0].path}: paths are relative "
            "to the table's folder"
        )
    return tuple(files)


def corners(text: str, where: str) -> Corners:
    """A box from `left top right bottom`, with any of space, comma and semicolon between."""
    parts = re.split(r"[\s,;]+", text.strip(" []()"))
    try:
        left, top, right, bottom = (float(part) for part in parts)
    except ValueError:
        left = top = right = bottom = math.nan
    if not (0 <= left < right < math.inf and 0 <= top < bottom < math.inf):
        raise BadInput(f"{where}: a box must be left top right bottom in pixels, as in '12 30 96 110', got {text!r}")
    return left, top, right, bottom


def _is_there(picture: Path) -> bool:
    try:
        return picture.is_file()
    except OSError:  # a name that no file can have
        return False


def _beside(table: Path, name: str) -> Path:
    place = Path(name.replace("\\", "/"))
    with suppress(RuntimeError):  # `~` of a user that does not exist is a name like any other
        place = place.expanduser()
    return table.parent / place


def _labels(texts: list[str], classes: Sequence[str], path: Path) -> list[int]:
    if any(is_list(text, classes) for text in texts):
        return [UNKNOWN] * len(texts)  # several labels: `Table.present` has them
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
class Table(PictureFiles):
    """Pictures listed in a CSV file with the columns `path`, `label` and, optionally, `mask` or `box`.

    A box is `left top right bottom` in pixels of the picture as it is shown; the far sides lie outside.
    Further columns `group:NAME` (`group:patient`) say which pictures belong together: tests then allow for it. Paths
    are relative to the table. A label is an index, a class name, or empty where it is not known. For networks of
    independent labels a picture may carry several: a cell lists them (`Edema|Effusion`, `3;7`, `none`), or a column
    `label:NAME` for each label holds 1, 0, or nothing where it is not known.
    """

    @property
    def name(self) -> str:
        return Path(self.path).stem if self.path else self.kind

    def _list(self) -> tuple[PictureFile, ...]:
        if not self.path:
            raise BadInput("the data set 'table' needs a path: table(path='pictures.csv')")
        return list_table(Path(self.path), self.classes)

    @property
    def label_names(self) -> tuple[str, ...]:
        if self.classes or not (self.several or any(file.label != UNKNOWN for file in self.files)):
            return ()
        marked = {name.removeprefix(PREFIX).strip() for name in self._rows[0] if name.startswith(PREFIX)}
        cells = {row.get("label", "") for row in self._rows} - {"", str(UNKNOWN)}
        names = marked or {name for cell in cells for name in (listed(cell) if is_list(cell) else [cell])}
        return () if are_indices(names) else tuple(sorted(names))

    def present(self) -> tuple[Carried | None, ...]:
        """The labels that each picture carries; None where they are not known."""
        return carried(self._rows, self.classes, self.path)

    @property
    def several(self) -> bool:
        """Whether pictures may carry several labels."""
        rows = self._rows
        return bool(indicators(tuple(rows[0]), self.classes)) or any(
            is_list(row.get("label", ""), self.classes) for row in rows
        )

    @cached_property
    def _rows(self) -> list[dict[str, str]]:
        return read_rows(Path(self.path), ["path"])

    def groups(self) -> Mapping[str, Grouping]:
        """Classes, fixed; and what the columns `group:NAME` hold, sampled: patients, sites, bursts."""
        rows = self._rows
        columns = [name for name in rows[0] if name and name.startswith(GROUP)]
        sampled = {
            name.removeprefix(GROUP).strip(): Grouping("sampled", tuple(row[name] or None for row in rows))
            for name in columns
        }
        return {**by_class(self.class_labels()), **sampled}
