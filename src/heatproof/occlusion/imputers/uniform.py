"""The uniform imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.occlusion.imputers.mean import repainted
from heatproof.occlusion.seeded_pictures import drawn, per_row
from heatproof.registry import imputer
from heatproof.types import Images, Keep


@imputer
@dataclass(frozen=True)
class Uniform:
    """Every hidden pixel and channel is drawn uniformly from [0, 1]."""

    random: ClassVar[bool] = True
    in_words: ClassVar[str] = "uniform noise"

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        shape = images.shape[1:]
        return drawn(per_row(seeds, images, "uniform"), images, lambda g: torch.rand(shape, generator=g))
