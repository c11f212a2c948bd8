"""Waterbirds as published: birds of CUB pasted on places that usually, and sometimes not, go with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heatproof.data._support.class_names import found_in
from heatproof.data._support.files import PictureFile, absolute, root
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.picture_groups import Grouping
from heatproof.data.table import read_rows
from heatproof.errors import BadInput
from heatproof.registry import dataset

BIRDS = ("landbird", "waterbird")
PLACES = {"0": "land", "1": "water"}
SPLITS = {"train": "0", "val": "1", "test": "2"}


@dataset("waterbirds")
@dataclass(frozen=True)
class Waterbirds(PictureFiles):
    """Landbirds and waterbirds on land and on water, with the bird as region.

    `path` holds `metadata.csv` and the pictures; `segmentations` is CUB's folder of masks, which fit since a bird keeps
    its place. Bird and place are fixed groups: a model that looks at the place shows it in them.

    Paper: Sagawa et al. 2020, "Distributionally Robust Neural Networks for Group Shifts"
    """

    split: str = "test"
    segmentations: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "segmentations", absolute(self.segmentations))
        if self.split not in SPLITS:
            raise BadInput(f"split must be train, val or test, got {self.split!r}")

    @property
    def name(self) -> str:
        return f"waterbirds {self.split}"

    @property
    def label_names(self) -> tuple[str, ...]:
        return () if self.classes else BIRDS

    def _rows(self) -> list[dict[str, str]]:
        home = root(self.path, self.kind)
        rows = read_rows(home / "metadata.csv", ["img_filename", "y", "split", "place"])
        return [row for row in rows if row["split"] == SPLITS[self.split]]

    def _list(self) -> tuple[PictureFile, ...]:
        home = root(self.path, self.kind)
        masks = root(self.segmentations, self.kind) if self.segmentations else None
        numbers = found_in(self.classes, BIRDS, self.kind)
        files = []
        for row in self._rows():
            if row["y"] not in ("0", "1") or row["place"] not in PLACES:
                raise BadInput(f"metadata.csv: y and place of {row['img_filename']} must be 0 or 1")
            name = row["img_filename"]
            mask = masks / Path(name).with_suffix(".png") if masks else None
            files.append(PictureFile(name, home / name, numbers[BIRDS[int(row["y"])]], mask))
        if not files:
            raise BadInput(f"metadata.csv lists no picture of the split {self.split}")
        return tuple(files)

    def groups(self) -> Mapping[str, Grouping]:
        """Birds and places, fixed."""
        places = tuple(PLACES[row["place"]] for row in self._rows())
        return {**super().groups(), "place": Grouping("fixed", places)}
