"""BAM's file names and lists: classes, instances, labels and boxes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from PIL import Image

from heatproof.data._support.listing import pictures_under
from heatproof.data.bam.classes import OBJECTS, SCENES
from heatproof.data.bam.masks import Mask
from heatproof.errors import BadInput

Published = Literal["obj", "scene", "scene_only", "dog_bedroom", "bamboo_forest", "bamboo_forest_patch"]
KSet = Literal[
    "scene_k1",
    "scene_k2",
    "scene_k3",
    "scene_k4",
    "scene_k5",
    "scene_k6",
    "scene_k7",
    "scene_k8",
    "scene_k9",
    "scene_k10",
]
Set = Literal[Published, "obj_grey", KSet]  # the last ones are written by the builder alone
Box = tuple[int, int, int, int]  # top row, left column, bottom row, right column; the last two exclusive

NAME = re.compile(
    r"^(?P<object>[a-z_]+)-(?P<scene>[a-z_]+)-(?P<index>\d{4})(?:_(?P<change>\d+))?\.(?P<kind>jpg|jpeg|png)$"
)


class Entry(NamedTuple):
    """One picture of BAM, from its name."""

    file: str
    object_label: int
    scene_label: int
    instance: int
    change: int | None = None  # patched pictures: the change in the authors' network, in whole logits

    @classmethod
    def of(cls, file: str) -> Entry:
        """Parses a file's name: `<object>-<scene>-<iiii>.jpg`, of patched pictures `…_<change>.jpg`."""
        found = NAME.match(file)
        if not found or found["object"] not in OBJECTS or found["scene"] not in SCENES:
            raise BadInput(f"a BAM picture must be named <object>-<scene>-<iiii>.jpg with classes of BAM, got {file!r}")
        labels = OBJECTS.index(found["object"]), SCENES.index(found["scene"])
        change = None if found["change"] is None else int(found["change"])
        return cls(file, *labels, int(found["index"]), change)

    @property
    def plain(self) -> str:
        """The name without the change, which the same picture has in the other sets."""
        if self.change is None:
            return self.file
        stem, _, kind = self.file.rpartition(".")
        return f"{stem.rpartition('_')[0]}.{kind}"


def find_sets(folder: Path) -> Path:
    """The folder that holds the sets: the one given, or its `data`."""
    for place in (folder / "data", folder):
        if any((place / name).is_dir() for name in get_args(Set)):
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


def unlisted(folder: Path) -> dict[str, Path]:
    """The pictures under a folder by name: how patched ones are published, and how the builder leaves its own sets."""
    found = {path.name: path for path in pictures_under(folder)} if folder.is_dir() else {}
    if not found:
        raise BadInput(f"{folder} must hold pictures, or its set a val.txt that lists them, got neither")
    return found


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


def enlarged(box: Box, frame: tuple[int, int], size: tuple[int, int]) -> Box:
    """A box of a (width, height) frame in a picture of another size, cut down to whole pixels as published."""
    across, down = size[0] / frame[0], size[1] / frame[1]
    top, left, bottom, right = box
    return int(top * down), int(left * across), int(bottom * down), int(right * across)
