"""Hidden pixels take those of another picture at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, cast

import torch
from torch import Generator, Tensor
from torch.nn import functional

from heatproof.errors import BadInput
from heatproof.occlusion.imputers.drawn import per_row
from heatproof.occlusion.imputers.mean import repainted
from heatproof.registry import imputer
from heatproof.types import Dataset, Images, Keep, View


@lru_cache(maxsize=8)
def _opened(donors: Any, side: int) -> Dataset:
    if not isinstance(donors, str):
        return cast(Dataset, donors)
    from heatproof import data

    return data.load(donors, view=View(side, side))


@lru_cache(maxsize=128)
def donor(donors: Any, index: int, height: int, width: int) -> Tensor | None:
    """One donor at the size of the picture it is to mend; None where its file cannot be read."""
    images = _opened(donors, max(height, width)).batch([index]).images
    if not len(images) or images.shape[2:] == (height, width):
        return images[0] if len(images) else None
    return functional.interpolate(images, (height, width), mode="bilinear", antialias=True).clamp(0, 1)[0]


@imputer
@dataclass(frozen=True)
class TrainSet:
    """Hidden pixels take those of a donor, another picture drawn once per image and draw, at the same place.

    Donors should be pictures that are not evaluated: a training split, or a folder of its own. A donor that
    equals the picture at hand is passed over.
    """

    donors: Any = "two_factor(split=train, count=1000)"  # a data set or its name
    count: int = 1000  # the first so many of them
    random: ClassVar[bool] = True

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        chosen: dict[int, Tensor] = {}
        seeds = per_row(seeds, images, "train_set")
        for image, seed in zip(images, seeds, strict=True):
            if seed not in chosen:  # a seed belongs to one image: all its coalitions share the donor
                chosen[seed] = self.chosen(image, seed)
        if len(chosen) == 1:
            return chosen[seeds[0]]
        return torch.stack([chosen[seed] for seed in seeds]) if chosen else images

    def chosen(self, image: Tensor, seed: int) -> Tensor:
        """A donor drawn uniformly from all that are not the picture itself."""
        channels, height, width = image.shape
        size = min(self.count, len(_opened(self.donors, max(height, width))))
        for index in torch.randperm(size, generator=Generator().manual_seed(seed)).tolist():
            found = donor(self.donors, index, height, width)
            if found is None or len(found) != channels:
                continue
            found = found.to(image.device, image.dtype)
            if not torch.equal(found, image):
                return found
        raise BadInput(f"donors must hold another picture with {channels} channels, got none in {self.donors!r}")
