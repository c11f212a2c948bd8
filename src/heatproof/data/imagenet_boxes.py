"""ImageNet's pictures with the boxes of the localisation challenge, in the folders it is published in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heatproof.data._support.files import PictureFile, absolute, identity, root
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.regions import Boxes
from heatproof.data._support.synsets import synset_indices
from heatproof.data._support.voc_xml import read_annotation
from heatproof.errors import BadInput
from heatproof.registry import dataset


@dataset("imagenet_boxes")
@dataclass(frozen=True)
class ImageNetBoxes(PictureFiles):
    """ImageNet pictures with boxes around the objects of their class.

    `path` is the folder `ILSVRC` of the challenge, with `Data/CLS-LOC/val` and `Annotations/CLS-LOC/val`; pictures may
    lie flat, or in a folder per synset. Pictures without an annotation are left out. Labels are the indices of
    ImageNet's thousand classes, by `LOC_synset_mapping.txt` near the pictures, by the file `synsets`, or by timm.

    Paper: Russakovsky et al. 2015, "ImageNet Large Scale Visual Recognition Challenge"
    """

    split: str = "val"
    synsets: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "synsets", absolute(self.synsets))

    @property
    def name(self) -> str:
        return f"{super().name} {self.split}"

    def _list(self) -> tuple[PictureFile, ...]:
        home = root(self.path, self.kind)
        pictures, notes = (
            root(str(home / part / "CLS-LOC" / self.split), self.kind) for part in ("Data", "Annotations")
        )
        found = pictures_under(pictures)
        places = {path.stem: path for path in notes.rglob("*.xml")}
        indices = synset_indices(self.synsets, home, {path.parent.name for path in found} - {pictures.name})
        files = []
        for path in found:
            note = places.get(path.stem)
            if note is not None:
                files.append(_entry(path, note, pictures, indices))
        if not files:
            raise BadInput(f"none of the {len(found)} pictures in {pictures} has an annotation in {notes}")
        return tuple(files)


def _entry(path: Path, note: Path, pictures: Path, indices: dict[str, int]) -> PictureFile:
    """The picture with all boxes of its class: the class of its first object, as each picture is annotated for one."""
    about = read_annotation(note)
    if not about.objects:
        raise BadInput(f"{note} names no object")
    kind = about.objects[0][0]
    if kind not in indices:
        raise BadInput(f"{note}: {kind!r} is none of ImageNet's thousand synsets")
    boxes = tuple(box for name, box, _ in about.objects if name == kind)
    return PictureFile(identity(path, pictures), path, indices[kind], Boxes(boxes, about.size))
