"""A folder of pictures and a folder of masks with the same names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heatproof.data._support.files import PictureFile, absolute, root
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.masks import warn_of_undecided
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data.folder import list_folder, numbered_alphabetically
from heatproof.errors import BadInput
from heatproof.registry import dataset


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
class MaskedFolder(PictureFiles):
    """A folder of pictures with a folder of masks of the same names, white where the answer is.

    Without `masks`, `path` must hold the two as `images` and `masks`. A picture without a mask is left out
    and named. Masks lie on pictures as these are shown, turned as their EXIF orientation says.
    """

    masks: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "masks", absolute(self.masks))

    @property
    def masked(self) -> bool:
        return True

    def _places(self) -> tuple[Path, Path]:
        home = root(self.path, self.kind)
        if self.masks:
            return home, root(self.masks, self.kind)
        return root(str(home / "images"), self.kind), root(str(home / "masks"), self.kind)

    def _list(self) -> tuple[PictureFile, ...]:
        pictures, masks = self._places()
        found = with_masks(list_folder(pictures, self.classes), masks)
        warn_of_undecided([(file.path, file.mask) for file in found])
        return found

    @property
    def label_names(self) -> tuple[str, ...]:
        return numbered_alphabetically(self._places()[0], self.files, self.classes)
