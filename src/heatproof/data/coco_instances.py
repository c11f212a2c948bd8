"""COCO's pictures with outlines or boxes of its objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from heatproof.data._support.class_names import found_in
from heatproof.data._support.coco_json import read_annotations
from heatproof.data._support.files import PictureFile, absolute, root
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.picture_groups import Grouping
from heatproof.data._support.regions import Boxes, Outlines, Region, Size
from heatproof.data._support.several_classes import by_picture, entry_id
from heatproof.errors import BadInput, UnknownName
from heatproof.registry import dataset

Form = Literal["outline", "box"]


def region_of(objects: Sequence[Mapping[str, Any]], frame: Size, form: Form) -> Region:
    """The union of objects, by their outlines or their boxes."""
    if form == "outline":
        return Outlines(tuple(one["segmentation"] for one in objects), frame)
    boxes = [tuple(float(value) for value in one["bbox"]) for one in objects]
    return Boxes(tuple((left, top, left + width, top + height) for left, top, width, height in boxes), frame)


@dataset("coco")
@dataclass(frozen=True)
class CocoInstances(PictureFiles):
    """Pictures with the objects that COCO's annotations outline: an entry per picture and category it shows.

    `path` is the folder of pictures (`val2017`), `annotations` the file (`instances_val2017.json`; any file in this
    format serves). The region holds all objects of the category; crowds are left out. `categories` takes only these.
    The entries of one picture are a sampled group, which tests allow for.

    Paper: Lin et al. 2014, "Microsoft COCO: Common Objects in Context"
    """

    annotations: str = ""
    categories: tuple[str, ...] = ()
    form: Form = "outline"  # of the region: outlines, or the boxes around them

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "annotations", absolute(self.annotations))
        object.__setattr__(self, "categories", tuple(self.categories))
        if self.form not in ("outline", "box"):
            raise BadInput(f"form must be 'outline' or 'box', got {self.form!r}")

    @cached_property
    def _content(self) -> dict[str, Any]:
        if not self.annotations:
            raise BadInput(
                "the data set 'coco' needs annotations: coco(path=val2017,annotations=instances_val2017.json)"
            )
        return read_annotations(Path(self.annotations))

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Categories in alphabetical order, or those that were chosen."""
        known = sorted({str(kind["name"]) for kind in self._content["categories"]})
        for name in self.categories:
            if name not in known:
                raise UnknownName.among("category of these annotations", name, known)
        return tuple(known)

    @property
    def label_names(self) -> tuple[str, ...]:
        return () if self.classes else self._names

    def _list(self) -> tuple[PictureFile, ...]:
        folder = root(self.path, self.kind)
        numbers = found_in(self.classes, self._names, Path(self.annotations).name)
        names = {kind["id"]: str(kind["name"]) for kind in self._content["categories"]}
        objects: dict[tuple[Any, str], list[Mapping[str, Any]]] = {}
        for one in self._content["annotations"]:
            name = names.get(one["category_id"], "")
            if one.get("iscrowd") or name not in numbers or (self.categories and name not in self.categories):
                continue
            if not one.get("segmentation" if self.form == "outline" else "bbox"):
                continue
            objects.setdefault((one["image_id"], name), []).append(one)
        images = {image["id"]: image for image in self._content["images"]}
        files: list[PictureFile] = []
        for (image, name), found in sorted(objects.items(), key=lambda item: (str(item[0][0]).zfill(12), item[0][1])):
            about = images.get(image)
            if about is None:
                raise BadInput(f"{self.annotations}: an object belongs to picture {image}, which is not listed")
            try:
                frame = (int(about["width"]), int(about["height"]))
                region = region_of(found, frame, self.form)
            except (KeyError, TypeError, ValueError) as error:
                raise BadInput(f"{self.annotations}: picture {image} or its objects lack or garble {error}") from error
            file = str(about["file_name"])
            files.append(PictureFile(entry_id(file, name), folder / file, numbers[name], region))
        if not files:
            raise BadInput(f"{self.annotations} outlines no object of the wanted categories")
        _check_some(files, folder)
        return tuple(files)

    def groups(self) -> Mapping[str, Grouping]:
        """Categories, fixed; the entries of one picture, sampled."""
        return {**super().groups(), **by_picture(self.files)}


def _check_some(files: Sequence[PictureFile], folder: Path) -> None:
    if not any(file.path.is_file() for file in files):
        raise BadInput(f"none of the {len(files)} annotated pictures is in {folder} (first: {files[0].path.name})")
