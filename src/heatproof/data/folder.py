"""A folder of pictures: flat, or one sub-folder per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heatproof.data._support.class_names import are_indices, class_indices
from heatproof.data._support.files import UNKNOWN, PictureFile, identity, root
from heatproof.data._support.listing import check_any, pictures_under
from heatproof.data._support.picture_files import PictureFiles
from heatproof.errors import BadInput
from heatproof.registry import dataset


def list_folder(folder: Path, classes: Sequence[str] = ()) -> tuple[PictureFile, ...]:
    """Every picture in the folder, labelled by its sub-folder if there are any, in the order of their
    paths."""
    return labelled(folder, pictures_under(folder), classes)


def labelled(folder: Path, found: Sequence[Path], classes: Sequence[str] = ()) -> tuple[PictureFile, ...]:
    """These pictures of a folder, labelled by the sub-folders they are in."""
    check_any(folder, found, "pictures")
    top = [path.relative_to(folder).parts for path in found]
    loose = [parts for parts in top if len(parts) == 1]
    if loose and len(loose) < len(top):
        inside = next(parts for parts in top if len(parts) > 1)
        raise BadInput(
            f"{folder} must hold pictures or one sub-folder of pictures per class, got both ({loose[0][0]} "
            f"and {inside[0]}/{inside[1]}): move one of them elsewhere"
        )
    # An empty class folder still counts, else the indices of those after it would shift.
    names = [] if loose else [p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")]
    labels = class_indices(names, classes)
    return tuple(
        PictureFile(identity(path, folder), path, labels[parts[0]] if labels else UNKNOWN)
        for path, parts in zip(found, top, strict=True)
    )


def numbered_alphabetically(folder: Path, files: Sequence[PictureFile], classes: Sequence[str]) -> tuple[str, ...]:
    """The sub-folders that got their indices from the alphabet; none if they hold an index or are looked up."""
    if classes or all(file.label == UNKNOWN for file in files):
        return ()
    names = [path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return () if are_indices(names) else tuple(sorted(names))


@dataset
@dataclass(frozen=True)
class Folder(PictureFiles):
    """A folder of pictures, flat or with one sub-folder per class.

    A sub-folder is named `index_name` (`239_Bernese_mountain_dog`) or by its class: then it is looked up in
    `classes` if given, else classes are numbered alphabetically. Pictures in a flat folder have no label.
    """

    def _list(self) -> tuple[PictureFile, ...]:
        return list_folder(root(self.path, self.kind), self.classes)

    @property
    def label_names(self) -> tuple[str, ...]:
        return numbered_alphabetically(Path(self.path), self.files, self.classes)
