"""Caltech-UCSD Birds 200 as published: birds with masks or boxes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heatproof.data._support.class_names import found_in
from heatproof.data._support.files import PictureFile, absolute, root
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.regions import Boxes
from heatproof.errors import BadInput
from heatproof.registry import dataset

SPLITS = {"train": ("1",), "test": ("0",), "all": ("0", "1")}


def read_numbered(path: Path, words: int) -> dict[str, list[str]]:
    """Lines of a number and `words` further words, by the number."""
    if not path.is_file():
        raise BadInput(f"there is no file {path}: name the folder CUB_200_2011 as it is published")
    rows: dict[str, list[str]] = {}
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        parts = text.split()
        if parts and len(parts) != words + 1:
            raise BadInput(f"{path}, line {line}: wanted a number and {words} more, got {text[:60]!r}")
        if parts:
            rows[parts[0]] = parts[1:]
    return rows


@dataset("cub200")
@dataclass(frozen=True)
class CUB200(PictureFiles):
    """Birds of 200 species with masks or boxes.

    `path` is `CUB_200_2011`; masks lie in `segmentations`, in it or beside it, and are cut where half of the annotators
    agree. Labels count from 0 in the published order, or follow the model's class names.

    Paper: Wah et al. 2011, "The Caltech-UCSD Birds-200-2011 Dataset"
    """

    split: Literal["train", "test", "all"] = "test"
    form: Literal["mask", "box"] = "mask"
    segmentations: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "segmentations", absolute(self.segmentations))
        if self.split not in SPLITS or self.form not in ("mask", "box"):
            raise BadInput(f"split must be train, test or all and form mask or box, got {self.split!r}, {self.form!r}")

    @property
    def name(self) -> str:
        return f"cub200 {self.split}"

    @property
    def label_names(self) -> tuple[str, ...]:
        return () if self.classes else self._species(root(self.path, self.kind))

    def _species(self, home: Path) -> tuple[str, ...]:
        rows = read_numbered(home / "classes.txt", 1)
        return tuple(rows[number][0].partition(".")[2].replace("_", " ") for number in sorted(rows, key=int))

    def _list(self) -> tuple[PictureFile, ...]:
        home = root(self.path, self.kind)
        species = self._species(home)
        numbers = found_in(self.classes, species, self.kind)
        names = read_numbered(home / "images.txt", 1)
        labels = read_numbered(home / "image_class_labels.txt", 1)
        splits = read_numbered(home / "train_test_split.txt", 1)
        boxes = read_numbered(home / "bounding_boxes.txt", 4) if self.form == "box" else {}
        masks = self._masks(home) if self.form == "mask" else home
        files = []
        for number, (name,) in names.items():
            if number not in labels or number not in splits or (self.form == "box" and number not in boxes):
                raise BadInput(f"{home}: picture {number} ({name}) lacks its class, split or box")
            kind = species[int(labels[number][0]) - 1]
            if splits[number][0] not in SPLITS[self.split] or kind not in numbers:
                continue
            if self.form == "box":
                left, top, width, height = (float(value) for value in boxes[number])
                region: Path | Boxes = Boxes(((left, top, left + width, top + height),))
            else:
                region = masks / Path(name).with_suffix(".png")
            files.append(PictureFile(name, home / "images" / name, numbers[kind], region))
        return tuple(files)

    def _masks(self, home: Path) -> Path:
        places = (
            [Path(self.segmentations)]
            if self.segmentations
            else [home / "segmentations", home.parent / "segmentations"]
        )
        for place in places:
            if place.is_dir():
                return place
        raise BadInput(
            f"there is no folder {places[0]}: unpack segmentations.tgz there (segmentations=PATH names another), "
            "or take form=box"
        )
