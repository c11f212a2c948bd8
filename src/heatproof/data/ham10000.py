"""HAM10000: dermatoscopic pictures of skin lesions with the lesion's outline, in the published folders."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heatproof.data._support.files import UNKNOWN, PictureFile, identity, numbered, root
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.picture_groups import Grouping, by_class
from heatproof.data.table import read_rows
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.types import keyed_seed

Task = Literal["diagnosis", "melanoma"]

DIAGNOSES = (
    "akiec",
    "bcc",
    "bkl",
    "df",
    "mel",
    "nv",
    "vasc",
)  # alphabetical, as the classes are usually numbered
MELANOMA = "mel"
METADATA = "HAM10000_metadata.csv"


def numbers_of(classes: Sequence[str], task: Task = "diagnosis") -> dict[str, int]:
    """The class of each diagnosis: by name where the model's classes are diagnoses, else in alphabetical order.

    For the task `melanoma` there are two: melanoma has the index of the class of that name, else 1; all other diagnoses
    are the other class.
    """
    named = {name.casefold().strip(): index for index, name in reversed(list(enumerate(classes)))}
    if task == "melanoma":
        if len(classes) not in (0, 2):
            raise BadInput(f"task='melanoma' needs a model of two classes, and the model has {len(classes)}")
        found = named.get("melanoma", named.get(MELANOMA, 1))
        return {name: found if name == MELANOMA else 1 - found for name in DIAGNOSES}
    if not set(DIAGNOSES) & set(named):
        return {name: index for index, name in enumerate(DIAGNOSES)}
    return {name: named.get(name, UNKNOWN) for name in DIAGNOSES}


def list_ham10000(
    folder: Path,
    classes: Sequence[str] = (),
    task: Task = "diagnosis",
    subset: tuple[int, int] | None = None,
    seed: int = 0,
    one_per_lesion: bool = True,
) -> tuple[PictureFile, ...]:
    """The pictures with mask, diagnosis and lesion: one per lesion or all, optionally a subset."""
    numbers = numbers_of(classes, task)
    rows = {row["image_id"]: row for row in read_rows(folder / METADATA, ["image_id", "dx"])}
    lesions = numbered([row.get("lesion_id", "") for row in rows.values() if row.get("lesion_id")])
    masks = {p.stem.removesuffix("_segmentation"): p for p in folder.glob("HAM10000_segmentations*/**/ISIC_*.png")}
    pictures = sorted(folder.glob("HAM10000_images*/**/ISIC_*.jpg"))
    if not pictures:
        raise BadInput(f"{folder} must hold HAM10000_images*/ISIC_*.jpg, got none: unpack the archives there")
    if not masks:
        raise BadInput(f"{folder} must hold HAM10000_segmentations*/ISIC_*_segmentation.png: unpack the masks there")
    files = []
    for path in pictures:
        row = rows.get(path.stem, {})
        diagnosis = row.get("dx", "")
        if diagnosis and diagnosis not in DIAGNOSES:
            raise BadInput(f"{METADATA}: dx of {path.stem} must be one of {', '.join(DIAGNOSES)}, got {diagnosis!r}")
        files.append(
            PictureFile(
                id=identity(path, folder),
                path=path,
                label=numbers[diagnosis] if diagnosis else UNKNOWN,
                mask=masks.get(path.stem),
                cluster=lesions.get(row.get("lesion_id", ""), UNKNOWN),
            )
        )
    if one_per_lesion:
        files = one_of_each(files)
    if subset is None:
        return tuple(files)
    diagnoses = [rows.get(file.path.stem, {}).get("dx", "") for file in files]
    return tuple(files[at] for at in drawn(diagnoses, subset, seed))


def one_of_each(files: Sequence[PictureFile]) -> list[PictureFile]:
    """The first photo of every lesion, preferably with an outline; all photos of unknown lesions."""
    chosen: dict[int, PictureFile] = {}
    for file in sorted(files, key=lambda file: file.mask is None):  # in their order otherwise
        chosen.setdefault(file.cluster, file)
    return [file for file in files if file.cluster == UNKNOWN or chosen[file.cluster] is file]


def drawn(diagnoses: Sequence[str], subset: tuple[int, int], seed: int) -> list[int]:
    """The sorted indices of a seeded draw of the given numbers of melanomas and others."""
    places: list[int] = []
    parts = {
        "melanomas": [at for at, name in enumerate(diagnoses) if name == MELANOMA],
        "others": [at for at, name in enumerate(diagnoses) if name not in ("", MELANOMA)],
    }
    for (part, there), wanted in zip(parts.items(), subset, strict=True):
        if not 0 <= wanted <= len(there):
            raise BadInput(
                f"subset must ask for 0 to {len(there)} {part}, as many as the folder shows, got {wanted}: "
                "give the data set a subset of its own"
            )
        places += random.Random(keyed_seed("ham10000", seed, part)).sample(there, wanted)
    return sorted(places)


@dataset("ham10000")
@dataclass(frozen=True)
class HAM10000(PictureFiles):
    """Skin lesions with diagnosis and outline, in the folders HAM10000 is published in.

    `path` holds HAM10000_images*/ISIC_*.jpg, HAM10000_segmentations*/ISIC_*_segmentation.png and
    HAM10000_metadata.csv. Labels are the seven diagnoses, matched by name if the model's classes have these names, else
    in alphabetical order. `task="melanoma"` labels melanoma (1) or not (0) instead; `subset=(167, 333)` draws that many
    melanomas and that many others by the seed. Of a lesion photographed several times one photo is shown.
    `one_per_lesion=False` shows every photo: those of one lesion are a sampled group, which intervals and tests allow
    for.

    Paper: Tschandl et al. 2018, "The HAM10000 dataset, a large collection of multi-source dermatoscopic
    images of common pigmented skin lesions"
    """

    task: Task = "diagnosis"
    subset: tuple[int, int] | None = None  # melanomas and others; all pictures if None
    seed: int = 0  # of the subset
    one_per_lesion: bool = True

    def __post_init__(self) -> None:
        if self.subset is not None:
            if len(self.subset) != 2:
                raise BadInput(f"subset must be two numbers, of melanomas and of others, got {self.subset}")
            object.__setattr__(self, "subset", tuple(self.subset))
        super().__post_init__()

    @property
    def name(self) -> str:
        task = ", melanoma or not" if self.task == "melanoma" else ""
        subset = f", {self.subset[0]} melanomas and {self.subset[1]} others" if self.subset else ""
        photos = "" if self.one_per_lesion else ", several photos of a lesion"
        return f"ham10000{task}{subset}{photos}"

    @property
    def masked(self) -> bool:
        return True

    def _list(self) -> tuple[PictureFile, ...]:
        folder = root(self.path, self.kind)
        return list_ham10000(folder, self.classes, self.task, self.subset, self.seed, self.one_per_lesion)

    def groups(self) -> Mapping[str, Grouping]:
        """Lesions, sampled; diagnoses, fixed, if every photo shows another lesion."""
        lesions = tuple(None if file.cluster == UNKNOWN else str(file.cluster) for file in self.files)
        return {**by_class(self.class_labels()), "lesion": Grouping("sampled", lesions)}
