"""The noise imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, IMAGENET_STD, coloured, repainted
from heatproof.occlusion.seeded_pictures import drawn, per_row
from heatproof.registry import imputer
from heatproof.types import Images, Keep


@imputer
@dataclass(frozen=True)
class Noise:
    """Every hidden pixel is drawn from a Gaussian with the mean and spread of photos, cut to [0, 1]."""

    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    random: ClassVar[bool] = True
    in_words: ClassVar[str] = "noise with the mean and spread of photos"

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        shape = images.shape[1:]
        noise = drawn(per_row(seeds, images, "noise"), images, lambda g: torch.randn(shape, generator=g))
        return (coloured(self.mean, images) + coloured(self.std, images) * noise).clamp(0, 1)
