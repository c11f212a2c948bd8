"""A folder of pictures and a folder of masks with the same names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heatproof.data._support.files import PictureFile, absolute, as_levels, as_view, digest, pick, read_batch, root
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.masks import warn_of_undecided
from heatproof.data._support.picture_groups import Grouping, by_class
from heatproof.data._support.pictures import Levels
from heatproof.data.folder import list_folder
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.types import Batch, View


def with_masks(files: Sequence[PictureFile], masks: Path) -> tuple[PictureFile, ...]:
    """The pictures with the mask of the same relative path; the suffix may differ (`a/dog.jpg`, `a/dog.png`).

    Masks in one flat folder serve pictures in class folders too, as long as their names are unique.
    """
    found = pictures_under(masks)
    if not found:
        raise BadInput(f"{masks} holds no masks: name the folder they are in")
    places: dict[str, list[Path]] = {}
    for path in found:
        places.setdefault(_stem(path.relative_to(masks).as_posix()), []).append(path)
    named: list[PictureFile] = []
    for file in files:
        stem = _stem(file.id)
        fitting = places.get(stem) or places.get(stem.rpartition("/")[2]) or []
        if len(fitting) > 1:
            raise BadInput(f"{file.id} has two masks, {fitting[0].name} and {fitting[1].name}: remove one")
        named.append(file._replace(mask=fitting[0] if fitting else None))
    if not any(file.mask for file in named):
        raise BadInput(
            f"no mask in {masks} is named like a picture ({files[0].id} wants {_stem(files[0].id)}.png, "
            f"there is {found[0].name}): give both the same names"
        )
    if bare := [file.id for file in named if file.mask is None]:
        warnings.warn(
            f"{len(bare)} of {len(named)} pictures have no mask in {masks} and are left out (first: {bare[0]})",
            stacklevel=2,
        )
    return tuple(named)


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name


@dataset
@dataclass(frozen=True)
class MaskedFolder:
    """A folder of pictures with a folder of masks of the same names, white where the answer is.

    Without `masks`, `path` must hold the two as `images` and `masks`. A picture without a mask is left out
    and named. Masks lie on pictures as these are shown, turned as their EXIF orientation says.
    """

    path: str = ""
    masks: str = ""
    view: View | None = None
    classes: tuple[str, ...] = ()
    grey: bool = False  # in one channel, for models that take only one
    levels: Levels | None = None  # grey values of black and white in pictures of more than 8 bits: [0, 4095]

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", as_view(self.view))
        object.__setattr__(self, "levels", as_levels(self.levels))
        object.__setattr__(self, "path", absolute(self.path))
        object.__setattr__(self, "masks", absolute(self.masks))

    @property
    def name(self) -> str:
        return Path(self.path).expanduser().absolute().name if self.path else "masked_folder"

    @cached_property
    def files(self) -> tuple[PictureFile, ...]:
        pictures = root(self.path, "masked_folder")
        if self.masks:
            masks = root(self.masks, "masked_folder")
        else:
            pictures, masks = root(str(pictures / "images"), ""), root(str(pictures / "masks"), "")
        found = with_masks(list_folder(pictures, self.classes), masks)
        warn_of_undecided([(file.path, file.mask) for file in found])
        return found

    def __len__(self) -> int:
        return len(self.files)

    def ids(self) -> tuple[str, ...]:
        return tuple(file.id for file in self.files)

    def class_labels(self) -> tuple[int, ...]:
        return tuple(file.label for file in self.files)

    def groups(self) -> Mapping[str, Grouping]:
        """Classes, fixed."""
        return by_class(self.class_labels())

    def batch(self, indices: Sequence[int], /) -> Batch:
        return read_batch(pick(self.files, indices), self.view, masked=True, grey=self.grey, levels=self.levels)

    def digest(self, indices: Sequence[int], /) -> str:
        return digest(pick(self.files, indices), self.grey, self.levels)
