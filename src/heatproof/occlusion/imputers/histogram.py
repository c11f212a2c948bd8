"""Hidden pixels take a colour that the visible part of the picture has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.imputers.drawn import drawn, per_row
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, coloured
from heatproof.registry import imputer
from heatproof.types import Images, Keep


def cells_of(image: Tensor, bins: int) -> Tensor:
    """(H*W,) which cell of the colour cube each pixel of a (C, H, W) picture is in; every bin is closed."""
    levels = (image.flatten(1) * bins).long().clamp(max=bins - 1)
    cells = levels[0]
    for level in levels[1:]:
        cells = cells * bins + level
    return cells


def typical_colour(image: Tensor, visible: Tensor, cells: Tensor, luck: float) -> Tensor:
    """(C,) the mean visible colour of the cell that `luck` in [0, 1) picks, cells weighing what they hold."""
    inside = cells[visible]
    reach = torch.bincount(inside).cumsum(0)
    cell = int(torch.searchsorted(reach, luck * len(inside), right=True))
    return image.flatten(1)[:, visible & (cells == cell)].mean(1)


@imputer
@dataclass(frozen=True)
class Histogram:
    """The whole hidden area takes one colour drawn from the colour histogram of the visible pixels.

    A cell of the histogram is drawn with its share of visible pixels and gives their mean; with nothing
    visible, the mean colour is taken.

    Paper: Wei et al. 2018, "Explain Black-box Image Classifications Using Superpixel-based Interpretation"
    """

    bins: int = 7  # per channel
    colour: tuple[float, ...] = IMAGENET_MEAN  # of a picture with nothing visible
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.bins <= 64:
            raise BadInput(f"bins must be from 1 to 64, got {self.bins}")

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        colours = coloured(self.colour, images).flatten().repeat(len(images), 1)
        luck = drawn(per_row(seeds, images, "histogram"), images, _luck).tolist()
        for row, visible in enumerate(keep.flatten(1)):
            if visible.any():
                cells = cells_of(images[row], self.bins)
                colours[row] = typical_colour(images[row], visible, cells, luck[row])
        return images.where(keep[:, None], colours[:, :, None, None])


def _luck(generator: Generator) -> Tensor:
    return torch.rand((), generator=generator)
