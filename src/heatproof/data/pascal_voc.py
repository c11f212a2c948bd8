"""Pascal VOC as published: pictures with masks of their classes, or boxes of their objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heatproof.data._support.class_names import found_in
from heatproof.data._support.files import PictureFile, root
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.picture_groups import Grouping
from heatproof.data._support.regions import Boxes, IndexMask
from heatproof.data._support.several_classes import by_picture, entry_id
from heatproof.data._support.voc_xml import read_annotation
from heatproof.errors import BadInput
from heatproof.registry import dataset

CLASSES = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
    "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # alphabetical; in masks they are the numbers 1 … 20, and 255 is the rim between objects  # fmt: skip


@dataset("pascal_voc")
@dataclass(frozen=True)
class PascalVOC(PictureFiles):
    """Pictures of 20 classes with masks or boxes, an entry per picture and class it shows.

    `path` is the year's folder (`VOCdevkit/VOC2012`). With `form="mask"` the pictures of `ImageSets/Segmentation` are
    shown with `SegmentationClass` as regions; with `form="box"` those of `ImageSets/Main` with the boxes of
    `Annotations`, difficult objects left out. The entries of one picture are a sampled group.

    Paper: Everingham et al. 2010, "The Pascal Visual Object Classes (VOC) Challenge"
    """

    split: str = "val"
    form: Literal["mask", "box"] = "mask"

    @property
    def name(self) -> str:
        return f"{super().name} {self.split}"

    @property
    def label_names(self) -> tuple[str, ...]:
        return () if self.classes else CLASSES

    def _list(self) -> tuple[PictureFile, ...]:
        folder = root(self.path, self.kind)
        if self.form not in ("mask", "box"):
            raise BadInput(f"form must be 'mask' or 'box', got {self.form!r}")
        numbers = found_in(self.classes, CLASSES, self.kind)
        files = [
            file
            for name in _names(folder / "ImageSets" / ("Segmentation" if self.form == "mask" else "Main"), self.split)
            for file in self._entries(folder, name, numbers)
        ]
        if not files:
            raise BadInput(f"{folder}: no picture of {self.split} shows a class of the model")
        return tuple(files)

    def _entries(self, folder: Path, name: str, numbers: Mapping[str, int]) -> list[PictureFile]:
        picture = folder / "JPEGImages" / f"{name}.jpg"
        found = read_annotation(folder / "Annotations" / f"{name}.xml")
        entries = []
        for kind in sorted({kind for kind, _, _ in found.objects}):
            if kind not in CLASSES:
                raise BadInput(f"Annotations/{name}.xml: {kind!r} is no class of Pascal VOC")
            boxes = tuple(box for one, box, difficult in found.objects if one == kind and not difficult)
            mask = IndexMask(folder / "SegmentationClass" / f"{name}.png", frozenset((CLASSES.index(kind) + 1,)))
            region = mask if self.form == "mask" else Boxes(boxes, found.size)
            if kind in numbers and (boxes or self.form == "mask"):
                entries.append(PictureFile(entry_id(picture.name, kind), picture, numbers[kind], region))
        return entries

    def groups(self) -> Mapping[str, Grouping]:
        """Classes, fixed; the entries of one picture, sampled."""
        return {**super().groups(), **by_picture(self.files)}


def _names(folder: Path, split: str) -> list[str]:
    listing = folder / f"{split}.txt"
    if not listing.is_file():
        there = ", ".join(sorted(path.stem for path in folder.glob("*.txt") if "_" not in path.stem)) or "none"
        raise BadInput(f"there is no list {listing}: splits in that folder are {there}")
    return [line.split()[0] for line in listing.read_text(encoding="utf-8").splitlines() if line.strip()]
