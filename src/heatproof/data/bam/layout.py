"""BAM in its published folder layout, read by file name and never by line number."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from PIL import Image

from heatproof.data._support.files import absolute, as_view
from heatproof.data._support.files import root as root_folder
from heatproof.data._support.masks import cut_region, read_mask, uncut
from heatproof.data._support.other_region import OTHER_REGION, lender
from heatproof.data._support.picture_groups import Grouping
from heatproof.data._support.pictures import apply_view, read_picture
from heatproof.data.bam.build import GREY
from heatproof.data.bam.classes import FIRST_VALIDATION, OBJECTS, SCENES
from heatproof.data.bam.masks import Mask, read_masks
from heatproof.data.bam.names import (
    Box,
    Entry,
    KSet,
    Set,
    enlarged,
    find_sets,
    placed,
    read_boxes,
    read_labels,
    unlisted,
)
from heatproof.data.bam.row import Row, of_one_size
from heatproof.data.bam.turns import in_turns
from heatproof.data.bam.twins import gap
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.types import Batch, View

# Patched pictures, k-sets and objects on grey come without boxes: these sets provide them.
WITH_BOXES = ("scene_only", "scene", "obj", "bamboo_forest")
BARE = ("scene_only", "bamboo_forest")  # show no objects
ANCHOR = "dog-bamboo_forest"  # what X^k shows for every k
NONE = -1  # the object of a picture that has none
# Keys in Batch.labels for data other than labels:
WITH_OBJECT = "with_object"  # for pictures without their object, the picture with it
NATIVE = "native_region"  # regions in the pictures' own frame
TWIN_GAP = "twin_gap"  # the largest difference of a picture and its twin outside the region, in 255 levels, on disk


@dataset("bam")
@dataclass(frozen=True)
class BAM:
    """BAM's validation pictures as published: objects pasted on scenes, with twins, masks and both labels.

    `path` is the folder that holds `data/obj`, `data/scene`, `data/scene_only` (or these directly). Twins are found by
    name in `scene_only`; they are separate JPEGs, so `exact_twins` replaces the twin outside the mask by the picture's
    own pixels. Class pairs take turns, so the first few pictures show every object and scene; `only` keeps those whose
    names begin so, as in `only="dog-bedroom"`.

    Regions are the masks that `heatproof data build bam` keeps in the pictures' own frame, or a crop of `val_mask`
    fitted into its box there; without either, the box itself. At a model's input size each pixel has the region of the
    picture's pixel it came from: nothing is smoothed, and no box is rounded again. `frame="native"` measures heat in
    the pictures' own frame instead, with maps averaged down to it.

    `scene_only` and `bamboo_forest` show no objects; those that null patches start from are found by name in `scene`
    or `obj`. `bamboo_forest_patch` holds patched pictures as listed in a `val.txt`, or as the published script leaves
    them (flat, named `…_<change>.jpg`, larger than their twins): box (times the enlargement, cut down to whole pixels
    as published), mask and twin are then those of the picture they were made from. Judge them with
    `iir(start="given")`; a patch is insignificant only to the network it was made for. `scene_k1` … `scene_k10` have
    the dog in that many scenes, and an empty region elsewhere; the twins of `obj_grey` are grey all over.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance"
    """

    takes_turns: ClassVar[bool] = True  # of the classes: any first pictures show them about alike

    path: str = ""
    set: Set = "obj"
    view: View | None = None
    exact_twins: bool = True
    only: str = ""
    frame: Literal["input", "native"] = "input"

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", as_view(self.view))
        object.__setattr__(self, "path", absolute(self.path))

    @property
    def name(self) -> str:
        words = ["bam", self.set, self.only, "" if self.frame == "input" else "in its own frame"]
        return " ".join(word for word in words if word)

    def anchor(self) -> BAM:
        """The pictures that a k-series is judged on: the scene that has the object for every k."""
        return replace(self, set="scene", only=ANCHOR)

    def bare(self) -> BAM:
        """The same pictures without their objects, as the background of null patches."""
        return replace(self, set="scene_only") if self.set in ("obj", "scene") else self

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
    def _unlisted(self) -> dict[str, Path] | None:
        """The pictures of a set without a list, by name; None if it has one."""
        if (self._folder / "val.txt").is_file():
            return None
        return unlisted(self._folder if self.set == "bamboo_forest_patch" else self._folder / "val")

    @property
    def _flat(self) -> bool:
        return self.set == "bamboo_forest_patch" and self._unlisted is not None

    @cached_property
    def _lists(self) -> Path:
        """The set with the boxes and masks: this one or, if it has no lists, one with the same picture names."""
        if self._unlisted is None:
            return self._folder
        found = next((self._sets / name for name in WITH_BOXES if (self._sets / name / "val_loc.txt").is_file()), None)
        if found is None:
            raise BadInput(
                f"{self._folder} holds pictures without boxes: these are read from the val_loc.txt of one of "
                f"{', '.join(WITH_BOXES)}, and {self._sets} has none of them"
            )
        return found

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        if self._unlisted is None:
            listed = read_labels(self._folder / "val.txt", self._side)
        else:
            listed = [Entry.of(file) for file in self._unlisted]
        found = [entry for entry in listed if entry.file.startswith(self.only)]
        if not found:
            raise BadInput(f"{self._folder} must hold pictures whose names begin with {self.only!r}, got none")
        return tuple(in_turns(found))

    @property
    def _side(self) -> Literal["object", "scene"]:
        return "object" if self.set in ("obj", "obj_grey") else "scene"

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

    def groups(self) -> Mapping[str, Grouping]:
        """Objects and scenes, fixed: there are ten of each."""
        return {
            "object": Grouping("fixed", tuple(OBJECTS[entry.object_label] for entry in self.entries)),
            "scene": Grouping("fixed", tuple(SCENES[entry.scene_label] for entry in self.entries)),
        }

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
        rows: list[Row] = []
        missing: dict[str, str] = {}
        for index in indices:
            entry = self.entries[index]
            try:
                rows.append(self._read(entry, self._lender(index)))
            except BadInput as error:
                missing[entry.file] = str(error)
        sides = (128, 128) if self.view is None else self.view.sides
        nowhere = torch.zeros(0, *sides, dtype=torch.bool)
        labels = {
            "object": [row.entry.object_label if row.has_object else NONE for row in rows],
            "scene": [row.entry.scene_label for row in rows],
            "object_id": [
                row.entry.object_label * 1000 + row.entry.instance if row.has_object else NONE for row in rows
            ],
            "scene_id": [row.entry.scene_label * 1000 + row.entry.instance for row in rows],
            TWIN_GAP: [row.gap for row in rows],
        }
        known = {name: torch.tensor(values, dtype=torch.int64) for name, values in labels.items()}
        known[OTHER_REGION] = torch.stack([row.lent for row in rows]) if rows else nowhere
        if self.set in BARE and rows:
            known[WITH_OBJECT] = torch.stack([row.whole for row in rows])
        if self.frame == "native" and rows:
            known[NATIVE] = torch.stack(of_one_size(rows))
        return Batch(
            images=torch.stack([row.image for row in rows]) if rows else torch.zeros(0, 3, *sides),
            targets=known[self._side],
            ids=tuple(row.entry.file for row in rows),
            regions=torch.stack([row.region for row in rows]) if rows else nowhere,
            twins=torch.stack([row.twin for row in rows]) if rows else torch.zeros(0, 3, *sides),
            labels=known,
            missing=missing,
        )

    def _lender(self, index: int) -> Entry:
        """The entry whose region a picture is lent; the last of an odd number gets the first's."""
        return self.entries[lender(index) % len(self.entries)]

    def _read(self, entry: Entry, other: Entry) -> Row:
        picture = read_picture(self._picture(entry))
        bare = self._bare(entry, picture.size)
        frame = bare.size
        if self._flat:  # these were enlarged to the network's input before patching, so the box is too
            bare = bare.resize(picture.size, Image.Resampling.BILINEAR)
        if bare.size != picture.size:
            raise BadInput(f"{entry.file} is {picture.size} pixels and its twin {bare.size}: they must be the same")
        has_object = self.set not in get_args(KSet) or picture.tobytes() != bare.tobytes()
        region = self._region(entry, frame, picture.size) if has_object else Image.new("L", picture.size)
        apart = gap(picture, bare, region, entry.file)
        if self.exact_twins:
            bare = Image.composite(bare, picture, region)
        there = self._with_object(entry)
        whole = picture if there == self._picture(entry) else read_picture(there)
        if whole.size != picture.size:
            raise BadInput(f"{entry.file} is {picture.size} pixels and with its object {whole.size}: give one size")
        shown, twin, start = (apply_view(shown_picture, self.view) for shown_picture in (picture, bare, whole))
        lent = Image.new("L", picture.size)
        with suppress(BadInput):  # the error surfaces with its own picture
            lent = lent if other == entry else self._region(other, frame, picture.size)
        here, elsewhere = (cut_region(mask, picture.size, self.view) for mask in (region, lent))
        return Row(entry, shown, here, uncut(region, self.view), elsewhere, twin, start, apart, has_object)

    def _region(self, entry: Entry, frame: tuple[int, int], size: tuple[int, int]) -> Image.Image:
        """The object's mask in the picture's own frame, 255 inside: as it was kept, else fitted into its box."""
        kept = self._kept_mask(entry)
        if kept is not None:
            return read_mask(kept, size).resize(size, Image.Resampling.NEAREST)
        name = self._listed_name(entry)
        if name not in self.boxes:
            raise BadInput(f"{name} is not in {self._lists.name}/val_loc.txt, so its object cannot be found")
        return placed(self.mask_of(entry), enlarged(self.boxes[name], frame, size), size, entry.file)

    def _kept_mask(self, entry: Entry) -> Path | None:
        """The builder's mask of a picture as large as it was built."""
        path = self._sets / "masks" / "val" / f"{Path(entry.file).stem}.png"
        return path if path.is_file() else None

    def _listed_name(self, entry: Entry) -> str:
        return entry.file if self._unlisted is None else entry.plain

    def _picture(self, entry: Entry) -> Path:
        return self._folder / "val" / entry.file if self._unlisted is None else self._unlisted[entry.file]

    def _bare(self, entry: Entry, size: tuple[int, int]) -> Image.Image:
        """The picture without its object."""
        return Image.new("RGB", size, (GREY,) * 3) if self.set == "obj_grey" else read_picture(self._twin(entry))

    def _with_object(self, entry: Entry) -> Path:
        """The file in which the picture has its object: of sets without objects by name in `scene` or `obj`, if it is
        there.
        """
        found = [self._sets / name / "val" / entry.file for name in ("scene", "obj") if self.set in BARE]
        return next((path for path in found if path.is_file()), self._picture(entry))

    def _twin(self, entry: Entry) -> Path:
        name = entry.plain
        sets = ("bamboo_forest", "scene_only") if self.set == "bamboo_forest_patch" else ("scene_only",)
        found = next((path for folder in sets if (path := self._sets / folder / "val" / name).is_file()), None)
        if found is None:
            where = " or ".join(f"{folder}/val" for folder in sets)
            raise BadInput(f"{entry.file} has no twin: there is no file {name} in {where}")
        return found

    def digest(self, indices: Sequence[int], /) -> str:
        total = hashlib.sha256(repr((self.set, self.exact_twins, self.frame)).encode())
        for index in indices:
            entry = self.entries[index]
            total.update(entry.file.encode())
            total.update(self._region_content(entry) + self._region_content(self._lender(index)))
            total.update(_content(self._picture(entry)))
            if self.set in BARE:
                total.update(_content(self._with_object(entry)))
            try:
                total.update(b"" if self.set == "obj_grey" else _content(self._twin(entry)))
            except BadInput:
                total.update(b"no file")
        return total.hexdigest()[:32]

    def _region_content(self, entry: Entry) -> bytes:
        kept = self._kept_mask(entry)
        if kept is not None:
            return kept.read_bytes()
        try:
            return repr(self.boxes.get(self._listed_name(entry))).encode() + self._masks_digest
        except BadInput:
            return b"no file"

    @cached_property
    def _masks_digest(self) -> bytes:
        return b"" if self._mask_file is None else hashlib.sha256(self._mask_file.read_bytes()).digest()


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b"no file"
