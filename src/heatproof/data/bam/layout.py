"""BAM as it lies on disk, read by file name and never by line number."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from heatproof.data.bam.classes import FIRST_VALIDATION, OBJECTS
from heatproof.data.bam.masks import Mask, read_masks
from heatproof.data.bam.names import Box, Entry, Set, enlarged, find_sets, flat_entries, placed, read_boxes, read_labels
from heatproof.data.bam.turns import in_turns
from heatproof.data.files import absolute, as_view
from heatproof.data.files import root as root_folder
from heatproof.data.masks import cut_region
from heatproof.data.pictures import apply_view, read_picture
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.types import Batch, View

# Patched pictures lie flat in their folder and bring nothing along: these sets tell the rest.
TOLD_BY = ("bamboo_forest", "scene_only", "scene", "obj")
WITH_OBJECT = "with_object"  # Batch.labels under which pictures without their object are shown with it


@dataset("bam")
@dataclass(frozen=True)
class BAM:
    """BAM's validation pictures as published: objects pasted on scenes, with twins, masks and both labels.

    `path` is the folder that holds `data/obj`, `data/scene`, `data/scene_only` (or these directly). Twins are found by
    name in `scene_only`; they are JPEGs of their own, so `exact_twins` shows the twin outside the mask bit for bit as
    the picture. Without `val_mask` the object's box is its region. Class pairs take turns, so the first few pictures
    show every object and scene. `set="bamboo_forest"` shows no objects; those that null patches start from are found by
    name in `scene`. `set="bamboo_forest_patch"` reads patched pictures as listed in a `val.txt`, or as the published
    script leaves them (flat, named `…_<change>.jpg`, larger than their twins): box, mask and twin are then those of the
    picture they were made from. Judge them with `iir(start="given")`; a patch is insignificant only to the network it
    was made for.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance"
    """

    path: str = ""
    set: Set = "obj"
    view: View | None = None
    exact_twins: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", as_view(self.view))
        object.__setattr__(self, "path", absolute(self.path))

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
    def _flat(self) -> bool:
        return self.set == "bamboo_forest_patch" and not (self._folder / "val.txt").is_file()

    @cached_property
    def _lists(self) -> Path:
        """The set that tells boxes and masks: this one, or for flat folders one with the same pictures unpatched."""
        if not self._flat:
            return self._folder
        found = next((self._sets / name for name in TOLD_BY if (self._sets / name / "val_loc.txt").is_file()), None)
        if found is None:
            raise BadInput(
                f"{self._folder} holds pictures without boxes: these are read from the val_loc.txt of one of "
                f"{', '.join(TOLD_BY)}, and {self._sets} has none of them"
            )
        return found

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        side: Literal["object", "scene"] = "object" if self.set == "obj" else "scene"
        found = flat_entries(self._folder) if self._flat else read_labels(self._folder / "val.txt", side)
        return tuple(in_turns(found))

    @cached_property
    def boxes(self) -> Mapping[str, Box]:
        return read_boxes(self._lists / "val_loc.txt")

    @cached_property
    def _mask_file(self) -> Path | None:
        return next((p for p in (self._lists / "val_mask", self._lists / "val_mask.npy") if p.is_file()), None)

    @cached_property
    def masks(self) -> list[Mask] | None:
        return None if self._mask_file is None else read_masks(self._mask_file)

    def __len__(self) -> int:
        return len(self.entries)

    def ids(self) -> tuple[str, ...]:
        return tuple(entry.file for entry in self.entries)

    def mask_of(self, entry: Entry) -> Mask:
        """By object and instance: 100 · object + (instance - 900), or the instance alone in sets of one object."""
        if self.masks is None:
            return np.ones((1, 1), dtype=np.bool_)
        place = entry.instance - FIRST_VALIDATION
        if self._lists.name in ("obj", "scene", "scene_only"):  # a hundred of each object as published
            each = len(self.masks) // len(OBJECTS)
            place = each * entry.object_label + place if place < each else -1
        if not 0 <= place < len(self.masks):
            raise BadInput(f"{entry.file}: val_mask has {len(self.masks)} masks, none at {place}")
        return self.masks[place]

    def batch(self, indices: Sequence[int], /) -> Batch:
        rows: list[tuple[Entry, Tensor, Tensor, Tensor, Tensor]] = []
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
        if self.set == "bamboo_forest" and rows:
            known[WITH_OBJECT] = torch.stack([row[4] for row in rows])
        return Batch(
            images=torch.stack([row[1] for row in rows]) if rows else torch.zeros(0, 3, side, side),
            targets=known["object" if self.set == "obj" else "scene"],
            ids=tuple(entry.file for entry in entries),
            regions=torch.stack([row[2] for row in rows]) if rows else torch.zeros(0, side, side, dtype=torch.bool),
            twins=torch.stack([row[3] for row in rows]) if rows else torch.zeros(0, 3, side, side),
            labels=known,
            missing=missing,
        )

    def _read(self, entry: Entry) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The picture, the region, the twin and the picture with its object, all as the view shows them."""
        picture = read_picture(self._picture(entry))
        told_as = entry.plain if self._flat else entry.file
        if told_as not in self.boxes:
            raise BadInput(f"{told_as} is not in {self._lists.name}/val_loc.txt, so its object cannot be found")
        bare = read_picture(self._twin(entry))
        box = self.boxes[told_as]
        if self._flat:  # enlarged to the network's input before it was patched, and so is its box
            box = enlarged(box, bare.size, picture.size)
            bare = bare.resize(picture.size, Image.Resampling.BILINEAR)
        region = placed(self.mask_of(entry), box, picture.size, entry.file)
        if bare.size != picture.size:
            raise BadInput(f"{entry.file} is {picture.size} pixels and its twin {bare.size}: they must be the same")
        if self.exact_twins:
            bare = Image.composite(bare, picture, region)
        there = self._with_object(entry)
        whole = picture if there == self._picture(entry) else read_picture(there)
        if whole.size != picture.size:
            raise BadInput(f"{entry.file} is {picture.size} pixels and with its object {whole.size}: give one size")
        shown, twin, start = (apply_view(one, self.view) for one in (picture, bare, whole))
        return shown, cut_region(region, picture.size, self.view), twin, start

    def _picture(self, entry: Entry) -> Path:
        return self._folder / entry.file if self._flat else self._folder / "val" / entry.file

    def _with_object(self, entry: Entry) -> Path:
        """Where the picture has its object: of the set without objects by name in `scene`, if it is there."""
        there = self._sets / "scene" / "val" / entry.file
        return there if self.set == "bamboo_forest" and there.is_file() else self._picture(entry)

    def _twin(self, entry: Entry) -> Path:
        name = entry.plain
        sets = ("bamboo_forest", "scene_only") if self.set == "bamboo_forest_patch" else ("scene_only",)
        found = next((path for one in sets if (path := self._sets / one / "val" / name).is_file()), None)
        if found is None:
            where = " or ".join(f"{one}/val" for one in sets)
            raise BadInput(f"{entry.file} has no twin: there is no file {name} in {where}")
        return found

    def digest(self, indices: Sequence[int], /) -> str:
        total = hashlib.sha256(repr((self.set, self.exact_twins)).encode())
        total.update(b"" if self._mask_file is None else self._mask_file.read_bytes())
        for index in indices:
            entry = self.entries[index]
            total.update(f"{entry.file}{self.boxes.get(entry.plain if self._flat else entry.file)}".encode())
            total.update(_content(self._picture(entry)))
            if self.set == "bamboo_forest":
                total.update(_content(self._with_object(entry)))
            try:
                total.update(_content(self._twin(entry)))
            except BadInput:
                total.update(b"no file")
        return total.hexdigest()[:32]


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b"no file"
