"""A folder of pictures and a folder of masks with the same names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heatproof.data._support.files import PictureFile, absolute, root
from heatproof.data._support.listing import check_any, pictures_under
from heatproof.data._support.masks import warn_of_undecided
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.pictures import SUFFIXES
from heatproof.data.folder import labelled, list_folder, numbered_alphabetically
from heatproof.errors import BadInput
from heatproof.registry import dataset


def with_masks(files: Sequence[PictureFile], masks: Path, pattern: str = "*") -> tuple[PictureFile, ...]:
    """The pictures with the mask of the same relative path; the suffix may differ (`a/dog.jpg`, `a/dog.png`).

    With a pattern the `*` is the picture's name: `*_mask` finds `a/dog_mask.png`. Masks in one flat folder serve
    pictures in class folders too, as long as their names are unique.
    """
    found = masks_under(masks, pattern)
    check_any(masks, list(found), "masks" if pattern == "*" else f"masks named {pattern}")
    places: dict[str, list[Path]] = {}
    for path, stem in found.items():
        places.setdefault(stem, []).append(path)
    named: list[PictureFile] = []
    for file in files:
        stem = _stem(file.id)
        fitting = places.get(stem) or places.get(stem.rpartition("/")[2]) or []
        if len(fitting) > 1:
            raise BadInput(f"{file.id} has two masks, {fitting[0].name} and {fitting[1].name}: remove one")
        named.append(file._replace(mask=fitting[0] if fitting else None))
    if not any(file.mask for file in named):
        wanted = pattern.replace("*", _stem(files[0].id)) + ("" if Path(pattern).suffix else ".png")
        raise BadInput(
            f"no mask in {masks} is named like a picture ({files[0].id} wants {wanted}, there is "
            f"{next(iter(found)).name}): give both the same names, or name a pattern in which * is the picture's name"
            f"{_suggested(files, list(found), masks)}"
        )
    if bare := [file.id for file in named if file.mask is None]:
        warnings.warn(
            f"{len(bare)} of {len(named)} pictures have no mask in {masks} and are left out (first: {bare[0]})",
            stacklevel=2,
        )
    return tuple(named)


def masks_under(folder: Path, pattern: str = "*") -> dict[Path, str]:
    """The masks in a folder whose names fit the pattern, each with the path of its picture, without a suffix."""
    before, star, after = pattern.partition("*")
    if not star or "*" in after:
        raise BadInput(f"a pattern of masks must have one *, which stands for the picture's name, got {pattern!r}")
    whole = Path(pattern).suffix.lower() in SUFFIXES
    found = {}
    for path in pictures_under(folder):
        name = path.name if whole else path.stem
        if name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after):
            inner = name[len(before) : len(name) - len(after)]
            found[path] = (path.relative_to(folder).parent / inner).as_posix()
    return found


def _suggested(files: Sequence[PictureFile], found: Sequence[Path], masks: Path) -> str:
    """A pattern by which the masks would be found, if one of them has the first picture's name in its own."""
    name = _stem(files[0].id).rpartition("/")[2]
    fitting = next((path.name for path in found if name in path.name), None)
    return f", as in --masks '{masks}/{fitting.replace(name, '*', 1)}'" if fitting else ""


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name


@dataset
@dataclass(frozen=True)
class MaskedFolder(PictureFiles):
    """A folder of pictures with a folder of masks of the same names, white where the answer is.

    Without `masks`, `path` must hold the two as `images` and `masks`. With a pattern, `masks/*_mask.png`, masks have
    names made of those of the pictures; `*_mask.png` alone lie beside them. A picture without a mask is left out and
    named. Masks lie on pictures as these are shown, turned as their EXIF orientation says.
    """

    masks: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        beside = "*" in self.masks and not Path(self.masks).parent.name
        object.__setattr__(self, "masks", absolute(str(Path(self.path) / self.masks) if beside else self.masks))

    @property
    def masked(self) -> bool:
        return True

    def _places(self) -> tuple[Path, Path, str]:
        """The folders of pictures and of masks, and the pattern of the masks' names."""
        home = root(self.path, self.kind)
        if "*" in self.masks:
            pattern = Path(self.masks)
            return home, root(str(pattern.parent), self.kind), pattern.name
        if self.masks:
            return home, root(self.masks, self.kind), "*"
        return root(str(home / "images"), self.kind), root(str(home / "masks"), self.kind), "*"

    def _list(self) -> tuple[PictureFile, ...]:
        pictures, masks, pattern = self._places()
        if pattern != "*" and masks.is_relative_to(pictures):  # masks among the pictures are none themselves
            own = masks_under(masks, pattern)
            files = labelled(pictures, [path for path in pictures_under(pictures) if path not in own], self.classes)
        else:
            files = list_folder(pictures, self.classes)
        found = with_masks(files, masks, pattern)
        warn_of_undecided([(file.path, file.mask) for file in found])
        return found

    @property
    def label_names(self) -> tuple[str, ...]:
        return numbered_alphabetically(self._places()[0], self.files, self.classes)
