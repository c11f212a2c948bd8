"""ImageNet-S as published: ImageNet's validation pictures with pixel masks of their class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heatproof.data._support.files import PictureFile, absolute, identity, root
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.regions import IndexMask
from heatproof.data._support.synsets import is_synset, synset_indices
from heatproof.errors import BadInput
from heatproof.registry import dataset


@dataset("imagenet_s")
@dataclass(frozen=True)
class ImageNetS(PictureFiles):
    """ImageNet pictures with a mask of their class.

    `path` is the folder of ImageNet-S, -S300 or -S50, which holds `validation/SYNSET/*.JPEG` and
    `validation-segmentation/SYNSET/*.png` (or `train-semi` with its masks). In a mask, red + 256 · green is the number
    of the class among the folder's synsets, from 1 on, and 1000 is a part to be ignored, which counts as outside.
    Labels are the indices of ImageNet's thousand classes; `synsets` names a file that lists them where timm is not
    installed.

    Paper: Gao et al. 2022, "Large-scale Unsupervised Semantic Segmentation"
    """

    split: str = "validation"
    synsets: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "synsets", absolute(self.synsets))

    @property
    def name(self) -> str:
        return f"{super().name} {self.split}"

    def _list(self) -> tuple[PictureFile, ...]:
        home = root(self.path, self.kind)
        pictures, masks = (root(str(home / folder), self.kind) for folder in (self.split, f"{self.split}-segmentation"))
        names = sorted(path.name for path in pictures.iterdir() if path.is_dir() and is_synset(path.name))
        if not names:
            raise BadInput(f"{pictures} must hold a folder per synset (n01440764), got none")
        indices = synset_indices(self.synsets, home, names)
        numbers = {name: place for place, name in enumerate(names, start=1)}
        files = []
        for path in pictures_under(pictures):
            kind = path.parent.name
            if kind not in indices:
                raise BadInput(f"{path}: the folder {kind!r} is none of ImageNet's thousand synsets")
            mask = IndexMask(_mask_of(path, masks), frozenset((numbers[kind],)))
            files.append(PictureFile(identity(path, pictures), path, indices[kind], mask))
        if not any(isinstance(file.mask, IndexMask) and file.mask.path.is_file() for file in files):
            raise BadInput(f"{masks} holds no mask of these pictures ({_mask_of(files[0].path, masks)} is not there)")
        return tuple(files)


def _mask_of(picture: Path, masks: Path) -> Path:
    return masks / picture.parent.name / f"{picture.stem}.png"
