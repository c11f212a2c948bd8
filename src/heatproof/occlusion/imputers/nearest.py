"""The nearest-neighbour imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
import numpy.typing as npt
import torch

from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, coloured
from heatproof.registry import imputer
from heatproof.types import Images, Keep

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


def nearest_exactly(visible: Flags) -> Places:
    """(H, W): the flat index of each pixel's nearest visible pixel."""
    from scipy import ndimage

    down, along = ndimage.distance_transform_edt(~visible, return_distances=False, return_indices=True)  # type: ignore[misc]
    return np.asarray(np.asarray(down, np.int64) * visible.shape[1] + along)


def nearest_by_chamfer(visible: Flags) -> Places:
    """The same in a fifth of the time, by a chamfer distance: a sum over steps of a 5 × 5 neighbourhood.

    Among visible pixels at nearly the same distance it may choose a farther one, by more than a pixel only rarely.
    """
    hidden = (~visible).view(np.uint8)
    _, labels = cv2.distanceTransformWithLabels(
        hidden, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )  # labels number the visible pixels row by row, from 1
    return np.asarray(np.flatnonzero(visible)[labels - 1], np.int64)


@imputer
@dataclass(frozen=True)
class Nearest:
    """Hidden pixels take the colour of the nearest visible pixel; with none visible, the mean colour."""

    colour: tuple[float, ...] = IMAGENET_MEAN  # of a picture with nothing visible
    search: Literal["exact", "chamfer"] = "exact"  # chamfer: the nearest up to a pixel, in a fifth of the time
    concurrent: ClassVar[bool] = True
    in_words: ClassVar[str] = "the colour of the nearest visible pixel"

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        find = nearest_exactly if self.search == "exact" else nearest_by_chamfer
        filled = torch.empty(images.shape, dtype=images.dtype, device=images.device)
        for row, visible in enumerate(keep.cpu().numpy()):
            if visible.any():  # a visible pixel is the nearest to itself
                picture = images[row].flatten(1).cpu()
                painted = picture.index_select(1, torch.from_numpy(find(visible).ravel()))
                filled[row] = painted.view(images.shape[1:])
            else:
                filled[row] = coloured(self.colour, images)[0]
        return filled
