"""The Oxford-IIIT pets as published: cats and dogs with trimaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heatproof.data._support.class_names import found_in
from heatproof.data._support.files import PictureFile, root
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.regions import IndexMask
from heatproof.errors import BadInput
from heatproof.registry import dataset

PET, RIM = 1, 3  # numbers in a trimap; 2 is the background
SPECIES = ("cat", "dog")


@dataset("oxford_pets")
@dataclass(frozen=True)
class OxfordPets(PictureFiles):
    """Cats and dogs of 37 breeds with the pet as region.

    `path` holds `images` and `annotations` with `trimaps` and the lists `test.txt` and `trainval.txt`. The rim of a
    trimap, where annotators did not decide, counts as outside unless `rim` is true. `task="species"` labels cat (0) or
    dog (1), else labels are the breeds in the published order, or follow the model's class names.

    Paper: Parkhi et al. 2012, "Cats and Dogs"
    """

    split: Literal["test", "trainval"] = "test"
    task: Literal["breed", "species"] = "breed"
    rim: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.split not in ("test", "trainval") or self.task not in ("breed", "species"):
            raise BadInput(
                f"split must be test or trainval and task breed or species, got {self.split!r} and {self.task!r}"
            )

    @property
    def name(self) -> str:
        return f"oxford_pets {self.split}" + (", cat or dog" if self.task == "species" else "")

    @property
    def label_names(self) -> tuple[str, ...]:
        return () if self.classes else self._classes(self._rows())

    def _rows(self) -> list[tuple[str, int, int]]:
        """Name, breed and species of each picture, counted from 1 as published."""
        listing = root(self.path, self.kind) / "annotations" / f"{self.split}.txt"
        if not listing.is_file():
            raise BadInput(f"there is no file {listing}: unpack annotations.tar.gz there")
        rows = []
        for line, text in enumerate(listing.read_text(encoding="utf-8").splitlines(), start=1):
            parts = text.split()
            if not parts or text.startswith("#"):
                continue
            if len(parts) != 4 or not all(part.isdecimal() for part in parts[1:]) or parts[2] not in ("1", "2"):
                raise BadInput(f"{listing}, line {line}: wanted a name, breed, species and number, got {text[:60]!r}")
            rows.append((parts[0], int(parts[1]), int(parts[2])))
        if not rows:
            raise BadInput(f"{listing} lists no picture")
        return rows

    def _classes(self, rows: list[tuple[str, int, int]]) -> tuple[str, ...]:
        if self.task == "species":
            return SPECIES
        breeds = {breed: name.rpartition("_")[0].replace("_", " ") for name, breed, _ in rows}
        return tuple(breeds.get(place, f"breed {place}") for place in range(1, max(breeds) + 1))

    def _list(self) -> tuple[PictureFile, ...]:
        home, rows = root(self.path, self.kind), self._rows()
        classes = self._classes(rows)
        numbers = found_in(self.classes, classes, self.kind)
        inside = frozenset((PET, RIM) if self.rim else (PET,))
        files = []
        for name, breed, species in rows:
            kind = classes[(species if self.task == "species" else breed) - 1]
            if kind in numbers:
                mask = IndexMask(home / "annotations" / "trimaps" / f"{name}.png", inside)
                files.append(PictureFile(f"{name}.jpg", home / "images" / f"{name}.jpg", numbers[kind], mask))
        return tuple(files)
