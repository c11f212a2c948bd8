"""BAM as it lies on disk, read by file name and never by line number."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from heatproof.data.bam.classes import FIRST_VALIDATION, OBJECTS, SCENES
from heatproof.data.bam.masks import Mask, read_masks
from heatproof.data.files import as_view
from heatproof.data.files import root as root_folder
from heatproof.data.masks import cut_region
from heatproof.data.pictures import apply_view, read_picture
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.types import Batch, View

Set = Literal["obj", "scene", "scene_only", "dog_bedroom", "bamboo_forest"]
Box = tuple[int, int, int, int]  # top row, left column, bottom row, right column; the last two exclusive

NAME = re.compile(r"^(?P<object>[a-z_]+)-(?P<scene>[a-z_]+)-(?P<index>\d{4})(?:_\d+)?\.(?:jpg|jpeg|png)$")


class Entry(NamedTuple):
    """One picture of BAM, from its name."""

    file: str
    object_label: int
    scene_label: int
    instance: int

    @classmethod
    def of(cls, file: str) -> Entry:
        """What a file's name says: `<object>-<scene>-<iiii>.jpg`."""
        found = NAME.match(file)
        if not found or found["object"] not in OBJECTS or found["scene"] not in SCENES:
            raise BadInput(f"a BAM picture must be named <object>-<scene>-<iiii>.jpg with classes of BAM, got {file!r}")
        return cls(file, OBJECTS.index(found["object"]), SCENES.index(found["scene"]), int(found["index"]))


def find_sets(folder: Path) -> Path:
    """The folder that holds the sets: the one given, or its `data`."""
    for place in (folder / "data", folder):
        if any((place / name).is_dir() for name in ("obj", "scene", "scene_only")):
            return place
    raise BadInput(
        f"{folder} must hold BAM's folders obj, scene and scene_only (or data with these in it), got none of them"
    )


def read_labels(path: Path, side: Literal["object", "scene"]) -> list[Entry]:
    """`val.txt`: a file name and its label per line; both must say the same."""
    entries = []
    for line, (file, word) in enumerate(_lines(path), start=1):
        entry = Entry.of(file)
        wanted = entry.object_label if side == "object" else entry.scene_label
        if word != str(wanted):
            raise BadInput(f"{path.name} line {line}: {file} has label {word}, but its name says {wanted} ({side})")
        entries.append(entry)
    if not entries:
        raise BadInput(f"{path} lists no pictures")
    return entries


def read_boxes(path: Path) -> dict[str, Box]:
    """`val_loc.txt`: a file name and `r0,c0,r1,c1` per line."""
    boxes = {}
    for line, (file, word) in enumerate(_lines(path), start=1):
        parts = word.split(",")
        if len(parts) != 4 or not all(part.strip().lstrip("-").isdigit() for part in parts):
            raise BadInput(
                f"{path.name} line {line}: a box must be row,column,row,column in whole pixels, got {word!r}"
            )
        top, left, bottom, right = (int(part) for part in parts)
        boxes[file] = (top, left, bottom, right)
    return boxes


def _lines(path: Path) -> list[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    rows = [line.split() for line in text.splitlines() if line.strip()]
    bad = next((row for row in rows if len(row) != 2), None)
    if bad is not None:
        raise BadInput(f"{path.name}: a line must be a file name and one word, got {' '.join(bad)!r}")
    return [(row[0], row[1]) for row in rows]


def placed(mask: Mask, box: Box, size: tuple[int, int], file: str) -> Image.Image:
    """The object's mask in the picture's own frame (width, height), 255 inside; it must lie within."""
    top, left, bottom, right = box
    width, height = size
    if not (0 <= top < bottom <= height and 0 <= left < right <= width):
        raise BadInput(f"{file}: the object's box {box} must lie within the picture of {width}x{height} pixels")
    crop = Image.fromarray(mask.astype(np.uint8) * 255).resize((right - left, bottom - top), Image.Resampling.BILINEAR)
    whole = np.zeros((height, width), dtype=np.uint8)
    whole[top:bottom, left:right] = np.where(np.asarray(crop) > 127, 255, 0)
    return Image.fromarray(whole)


@dataset("bam")
@dataclass(frozen=True)
class BAM:
    """BAM's validation pictures as published: objects pasted on scenes, with twins, masks and both labels.

    `path` is the folder that holds `data/obj`, `data/scene`, `data/scene_only` (or these directly). Twins are found by
    name in `scene_only`; they are JPEGs of their own, so `exact_twins` shows the twin outside the mask bit for bit as
    the picture. Without `val_mask` the object's box is its region.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance"
    """

    path: str = ""
    set: Set = "obj"
    view: View | None = None
    exact_twins: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", as_view(self.view))

    @property
    def name(self) -> str:
        return f"bam {self.set}"

    @cached_property
    def _sets(self) -> Path:
        return find_sets(root_folder(self.path, "bam"))

    @cached_property
    def _folder(self) -> Path:
        folder = self._sets / self.set
        if not folder.is_dir():
            raise BadInput(f"there is no BAM set {self.set!r} in {self._sets}: unpack it there")
        return folder

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        side: Literal["object", "scene"] = "object" if self.set == "obj" else "scene"
        return tuple(sorted(read_labels(self._folder / "val.txt", side)))

    @cached_property
    def boxes(self) -> Mapping[str, Box]:
        return read_boxes(self._folder / "val_loc.txt")

    @cached_property
    def masks(self) -> list[Mask] | None:
        for name in ("val_mask", "val_mask.npy"):
            if (self._folder / name).is_file():
                return read_masks(self._folder / name)
        return None

    def __len__(self) -> int:
        return len(self.entries)

    def ids(self) -> tuple[str, ...]:
        return tuple(entry.file for entry in self.entries)

    def mask_of(self, entry: Entry) -> Mask:
        """By object and instance: 100 · object + (instance - 900), or the instance alone in sets of one object."""
        if self.masks is None:
            return np.ones((1, 1), dtype=np.bool_)
        place = entry.instance - FIRST_VALIDATION
        if self.set in ("obj", "scene", "scene_only"):  # a hundred of each object as published
            each = len(self.masks) // len(OBJECTS)
            place = each * entry.object_label + place if place < each else -1
        if not 0 <= place < len(self.masks):
            raise BadInput(f"{entry.file}: val_mask has {len(self.masks)} masks, none at {place}")
        return self.masks[place]

    def batch(self, indices: Sequence[int], /) -> Batch:
        rows: list[tuple[Entry, Tensor, Tensor, Tensor]] = []
        missing: dict[str, str] = {}
        for index in indices:
            entry = self.entries[index]
            try:
                rows.append((entry, *self._read(entry)))
            except BadInput as error:
                missing[entry.file] = str(error)
        side = 128 if self.view is None else self.view.size
        entries = [row[0] for row in rows]
        labels = {
            "object": [entry.object_label for entry in entries],
            "scene": [entry.scene_label for entry in entries],
            "object_id": [entry.object_label * 1000 + entry.instance for entry in entries],
            "scene_id": [entry.scene_label * 1000 + entry.instance for entry in entries],
        }
        known = {name: torch.tensor(values, dtype=torch.int64) for name, values in labels.items()}
        return Batch(
            images=torch.stack([row[1] for row in rows]) if rows else torch.zeros(0, 3, side, side),
            targets=known["object" if self.set == "obj" else "scene"],
            ids=tuple(entry.file for entry in entries),
            regions=torch.stack([row[2] for row in rows]) if rows else torch.zeros(0, side, side, dtype=torch.bool),
            twins=torch.stack([row[3] for row in rows]) if rows else torch.zeros(0, 3, side, side),
            labels=known,
            missing=missing,
        )

    def _read(self, entry: Entry) -> tuple[Tensor, Tensor, Tensor]:
        """The picture, the region and the twin, all as the view shows them."""
        picture = read_picture(self._folder / "val" / entry.file)
        if entry.file not in self.boxes:
            raise BadInput(f"{entry.file} is in val.txt but not in val_loc.txt")
        region = placed(self.mask_of(entry), self.boxes[entry.file], picture.size, entry.file)
        bare = read_picture(self._twin(entry))
        if bare.size != picture.size:
            raise BadInput(f"{entry.file} is {picture.size} pixels and its twin {bare.size}: they must be the same")
        if self.exact_twins:
            bare = Image.composite(bare, picture, region)
        return apply_view(picture, self.view), cut_region(region, picture.size, self.view), apply_view(bare, self.view)

    def _twin(self, entry: Entry) -> Path:
        path = self._sets / "scene_only" / "val" / entry.file
        if not path.is_file():
            raise BadInput(f"{entry.file} has no twin: there is no file of that name in scene_only/val")
        return path

    def digest(self, indices: Sequence[int], /) -> str:
        total = hashlib.sha256(repr((self.set, self.exact_twins)).encode())
        masks = next((p for p in (self._folder / "val_mask", self._folder / "val_mask.npy") if p.is_file()), None)
        total.update(b"" if masks is None else masks.read_bytes())
        for index in indices:
            entry = self.entries[index]
            total.update(f"{entry.file}{self.boxes.get(entry.file)}".encode())
            for path in (self._folder / "val" / entry.file, self._sets / "scene_only" / "val" / entry.file):
                total.update(path.read_bytes() if path.is_file() else b"no file")
        return total.hexdigest()[:32]
