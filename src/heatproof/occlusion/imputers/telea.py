"""The imputer by Telea's inpainting."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar

import cv2
import numpy as np
import numpy.typing as npt
import torch

from heatproof import engine
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, coloured
from heatproof.registry import imputer
from heatproof.types import Images, Keep

Bytes = npt.NDArray[np.uint8]


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """A pool of threads, which suffice to use all cores, since OpenCV releases the interpreter lock while it paints.

    A fork has none of its parent's threads, hence the process number in the cache key.
    """
    return ThreadPoolExecutor(engine.free_cores(), thread_name_prefix="telea")


def paint(picture: Bytes, hidden: Bytes, radius: float) -> Bytes:
    """One (H, W, C) picture with its hidden pixels (1) painted in; OpenCV takes one or three channels."""
    layers = [picture] if picture.shape[2] == 3 else np.split(picture, picture.shape[2], 2)
    painted = [cv2.inpaint(np.ascontiguousarray(p), hidden, radius, cv2.INPAINT_TELEA) for p in layers]
    return np.concatenate([p.reshape(*hidden.shape, -1) for p in painted], 2)


@imputer
@dataclass(frozen=True)
class Telea:
    """Hidden pixels are painted in by fast marching from the visible ones (OpenCV's inpainting).

    Paper: Telea 2004, "An Image Inpainting Technique Based on the Fast Marching Method"
    """

    radius: float = 3.0
    colour: tuple[float, ...] = IMAGENET_MEAN  # of a picture with nothing left to paint from
    concurrent: ClassVar[bool] = True
    in_words: ClassVar[str] = "inpainting from the visible pixels (Telea)"

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        filled = coloured(self.colour, images).expand_as(images).clone()
        visible = keep.flatten(1)
        rows = (visible.any(1) & ~visible.all(1)).nonzero().flatten()
        if len(rows):
            pictures = (images[rows] * 255).round().byte().permute(0, 2, 3, 1).contiguous().cpu().numpy()
            hidden = (~keep[rows]).byte().contiguous().cpu().numpy()
            side_by_side = len(rows) > 1 and engine.free_cores() > 1
            each = _threads(os.getpid()).map if side_by_side else map
            painted = np.stack(list(each(partial(paint, radius=self.radius), pictures, hidden)))
            filled[rows] = torch.from_numpy(painted).permute(0, 3, 1, 2).to(images.device, images.dtype) / 255
        return images.where(keep[:, None], filled)
