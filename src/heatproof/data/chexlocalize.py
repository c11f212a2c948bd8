"""CheXlocalize as published: CheXpert's chest X-rays with radiologists' outlines of ten pathologies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatproof.data._support.class_names import found_in
from heatproof.data._support.coco_json import read_json
from heatproof.data._support.files import PictureFile, absolute, root
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.picture_groups import Grouping
from heatproof.data._support.regions import Outlines, unpacked
from heatproof.data._support.several_classes import BETWEEN, entry_id
from heatproof.errors import BadInput
from heatproof.registry import dataset

LABELS = (
    "No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema",
    "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture",
    "Support Devices",
)  # CheXpert's fourteen, in its order  # fmt: skip
OTHER_NAMES = {"Airspace Opacity": "Lung Opacity"}  # what the outlines call one of CheXpert's labels
_PICTURE = re.compile(r"(patient\w+?)_(study\w+?)_(view\w+)")


@dataset("chexlocalize")
@dataclass(frozen=True)
class CheXlocalize(PictureFiles):
    """Chest X-rays with outlines of pathologies, an entry per picture and pathology that was outlined.

    `path` is CheXpert's folder of pictures (`CheXpert/val`, with `patient64541/study1/view1_frontal.jpg`),
    `annotations` the file of outlines (`gt_segmentations_val.json`). Labels are CheXpert's fourteen, or follow the
    model's class names. Patients are a sampled group, which tests allow for.

    Paper: Saporta et al. 2022, "Benchmarking saliency methods for chest X-ray interpretation"
    """

    annotations: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "annotations", absolute(self.annotations))

    @property
    def label_names(self) -> tuple[str, ...]:
        return () if self.classes else LABELS

    def _list(self) -> tuple[PictureFile, ...]:
        folder = root(self.path, self.kind)
        if not self.annotations:
            raise BadInput("the data set 'chexlocalize' needs annotations: annotations=gt_segmentations_val.json")
        content = read_json(Path(self.annotations), "CheXlocalize's outlines")
        if not isinstance(content, Mapping):
            raise BadInput(
                f"{self.annotations} must be CheXlocalize's outlines by picture, got {type(content).__name__}"
            )
        numbers = found_in(self.classes, LABELS, self.kind)
        files = [file for name in sorted(content) for file in self._entries(folder, name, content[name], numbers)]
        if not files:
            raise BadInput(f"{self.annotations} outlines nothing that the model has a class for")
        if not any(file.path.is_file() for file in files):
            raise BadInput(f"none of the {len(files)} outlined pictures is in {folder} (first: {files[0].path})")
        return tuple(files)

    def _entries(self, folder: Path, name: str, found: Any, numbers: Mapping[str, int]) -> list[PictureFile]:
        where = _PICTURE.fullmatch(name)
        if where is None or not isinstance(found, Mapping):
            raise BadInput(
                f"{self.annotations}: {name!r} must be named patient_study_view and hold outlines by pathology"
            )
        entries = []
        for pathology, packed in sorted(found.items()):
            label = OTHER_NAMES.get(str(pathology), str(pathology))
            try:
                height, width = (int(side) for side in packed["size"])
                empty = not packed["counts"]
            except (KeyError, TypeError, ValueError) as error:
                raise BadInput(
                    f"{self.annotations}: {name}, {pathology}: wanted size and counts, got {error}"
                ) from error
            outline = Outlines((dict(packed),), (width, height))
            if label not in numbers or empty or not _holds_anything(outline):
                continue
            picture = folder.joinpath(*where.groups()).with_suffix(".jpg")
            entries.append(PictureFile(entry_id(name, pathology), picture, numbers[label], outline))
        return entries

    def groups(self) -> Mapping[str, Grouping]:
        """Pathologies, fixed; patients, sampled."""
        patients = tuple(file.id.rpartition(BETWEEN)[0].partition("_")[0] for file in self.files)
        return {**super().groups(), "patient": Grouping("sampled", patients)}


def _holds_anything(outline: Outlines) -> bool:
    """Whether anything was outlined: pathologies that are absent are published as empty outlines."""
    counts = outline.segmentations[0]["counts"]
    return len(counts if isinstance(counts, list) else unpacked(counts)) > 1
