"""The histogram imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, coloured, repainted
from heatproof.occlusion.seeded_pictures import drawn, per_row
from heatproof.registry import imputer
from heatproof.types import Images, Keep

Floats = npt.NDArray[np.float32]
Cells = npt.NDArray[np.int32]


def cells_of(image: Floats, bins: int) -> Cells:
    """(H*W,): the cell of the colour cube of each pixel of a (C, H*W) picture; the last bin includes 1."""
    levels = np.minimum((image * bins).astype(np.int64), bins - 1)
    return np.asarray(np.ravel_multi_index(tuple(levels), (bins,) * len(image)), np.int32)


def typical_colour(image: Floats, visible: npt.NDArray[np.bool_], cells: Cells, luck: float) -> Floats:
    """(C,): the mean visible colour of the cell that `luck` in [0, 1) picks, in proportion to the cells' pixels."""
    reach = np.bincount(cells[visible]).cumsum()
    cell = np.searchsorted(reach, luck * reach[-1], side="right")
    inside = np.flatnonzero((cells == cell) & visible)
    return np.asarray(image[:, inside].mean(1, dtype=np.float64), np.float32)


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
    in_words: ClassVar[str] = "one colour of the visible pixels, drawn at random"

    def __post_init__(self) -> None:
        if not 1 <= self.bins <= 64:
            raise BadInput(f"bins must be from 1 to 64, got {self.bins}")

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        colours = coloured(self.colour, images).flatten().repeat(len(images), 1)
        luck = drawn(per_row(seeds, images, "histogram"), images, _luck).tolist()
        repeated = len(images) > 1 and images.stride(0) == 0  # one picture under many masks
        pictures = (images[:1] if repeated else images).flatten(2).float().cpu().numpy()
        cells = [cells_of(picture, self.bins) for picture in pictures]
        for row, visible in enumerate(keep.flatten(1).cpu().numpy()):
            if visible.any():
                at = 0 if repeated else row
                found = typical_colour(pictures[at], visible, cells[at], luck[row])
                colours[row] = torch.from_numpy(found).to(images.device, images.dtype)
        return colours[:, :, None, None]


def _luck(generator: Generator) -> Tensor:
    return torch.rand((), generator=generator, dtype=torch.float64)
