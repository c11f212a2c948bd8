"""A folder of pictures: flat, or one sub-folder per class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heatproof.data._support.class_names import class_indices
from heatproof.data._support.files import (
    UNKNOWN,
    PictureFile,
    absolute,
    as_levels,
    as_view,
    digest,
    identity,
    pick,
    read_batch,
    root,
)
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.picture_groups import Grouping, by_class
from heatproof.data._support.pictures import Levels
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.types import Batch, View


def list_folder(folder: Path, classes: Sequence[str] = ()) -> tuple[PictureFile, ...]:
    """Every picture in the folder, labelled by its sub-folder if there are any, in the order of their
    paths."""
    found = pictures_under(folder)
    if not found:
        raise BadInput(f"{folder} holds no pictures (.jpg, .png, …): name the folder they are in")
    top = [path.relative_to(folder).parts for path in found]
    loose = [parts for parts in top if len(parts) == 1]
    if loose and len(loose) < len(top):
        inside = next(parts for parts in top if len(parts) > 1)
        raise BadInput(
            f"{folder} must hold pictures or one sub-folder of pictures per class, got both ({loose[0][0]} "
            f"and "
            f"{inside[0]}/{inside[1]}): move one of them elsewhere"
        )
    # An empty class folder still counts, else the indices of those after it would shift.
    names = [] if loose else [p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")]
    labels = class_indices(names, classes)
    return tuple(
        PictureFile(identity(path, folder), path, labels[parts[0]] if labels else UNKNOWN)
        for path, parts in zip(found, top, strict=True)
    )


@dataset
@dataclass(frozen=True)
class Folder:
    """A folder of pictures, flat or with one sub-folder per class.

    A sub-folder is named `index_name` (`239_Bernese_mountain_dog`) or by its class: then it is looked up in
    `classes` if given, else classes are numbered alphabetically. Pictures in a flat folder have no label.
    """

    path: str = ""
    view: View | None = None
    classes: tuple[str, ...] = ()
    grey: bool = False  # in one channel, for models that take only one
    levels: Levels | None = None  # grey values of black and white in pictures of more than 8 bits: [0, 4095]

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", as_view(self.view))
        object.__setattr__(self, "levels", as_levels(self.levels))
        object.__setattr__(self, "path", absolute(self.path))

    @property
    def name(self) -> str:
        return Path(self.path).expanduser().absolute().name if self.path else "folder"

    @cached_property
    def files(self) -> tuple[PictureFile, ...]:
        return list_folder(root(self.path, "folder"), self.classes)

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
        return read_batch(pick(self.files, indices), self.view, grey=self.grey, levels=self.levels)

    def digest(self, indices: Sequence[int], /) -> str:
        return digest(pick(self.files, indices), self.grey, self.levels)
