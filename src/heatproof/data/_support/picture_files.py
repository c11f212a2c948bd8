"""What every data set of picture files has: the fields that say how they are read, and the files it lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heatproof import registry
from heatproof.data._support.files import PictureFile, absolute, as_levels, as_view, digest, pick, read_batch
from heatproof.data._support.picture_groups import Grouping, by_class
from heatproof.data._support.pictures import Levels
from heatproof.data._support.pixels import Plane, Reading
from heatproof.field_types import snake
from heatproof.types import Batch, View


@dataclass(frozen=True)
class PictureFiles:
    """A data set of picture files: each kind says where they lie (`_list`) and what else it knows of them."""

    path: str = ""
    view: View | None = None
    classes: tuple[str, ...] = ()  # the model's, by which labels are numbered
    grey: bool = False  # in one channel, for models that take only one
    levels: Levels | None = None  # values of black and white in pictures of more than 8 bits: [0, 4095]
    page: int | None = None  # of a TIFF, a DICOM file or a volume; None: the first, of a volume the middle slice
    plane: Plane = "axial"  # of the slices of a volume

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", as_view(self.view))
        object.__setattr__(self, "levels", as_levels(self.levels))
        object.__setattr__(self, "path", absolute(self.path))
        object.__setattr__(self, "classes", tuple(self.classes))
        _ = self.reading  # checked before any file is opened

    @property
    def reading(self) -> Reading:
        """How its files are read."""
        return Reading(self.grey, self.levels, self.page, self.plane)

    @property
    def name(self) -> str:
        return Path(self.path).name if self.path else self.kind

    @property
    def kind(self) -> str:
        """The registered name, for messages."""
        known = registry.name_of(self)
        return known[1] if known else snake(type(self).__name__)

    def _list(self) -> tuple[PictureFile, ...]:
        raise TypeError(f"{type(self).__name__} must say which files it lists")

    @cached_property
    def files(self) -> tuple[PictureFile, ...]:
        return self._list()

    @property
    def masked(self) -> bool:
        """Whether its pictures have regions: one without is then named as missing."""
        return any(file.mask is not None for file in self.files)

    @property
    def label_names(self) -> tuple[str, ...]:
        """What the labels 0, 1, … mean where the data set numbers its classes; empty where they are the model's."""
        return ()

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
        chosen = pick(self.files, indices)
        return read_batch(chosen, self.view, masked=self.masked, reading=self.reading)

    def digest(self, indices: Sequence[int], /) -> str:
        return digest(pick(self.files, indices), self.reading)
