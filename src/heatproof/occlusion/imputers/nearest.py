"""Hidden pixels take the colour of the nearest visible one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import ndimage

from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, coloured
from heatproof.registry import imputer
from heatproof.types import Images, Keep


@imputer
@dataclass(frozen=True)
class Nearest:
    """Hidden pixels take the colour of the nearest visible pixel; with none visible, the mean colour."""

    colour: tuple[float, ...] = IMAGENET_MEAN  # of a picture with nothing visible

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        filled = coloured(self.colour, images).expand_as(images).clone()
        for row, visible in enumerate(keep.cpu().numpy()):
            if visible.any():
                nearest = ndimage.distance_transform_edt(~visible, return_distances=False, return_indices=True)
                down, along = torch.from_numpy(np.asarray(nearest)).to(images.device, torch.int64)
                filled[row] = images[row][:, down, along]
        return images.where(keep[:, None], filled)
