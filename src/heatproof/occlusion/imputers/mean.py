"""The mean imputer, and colours as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.registry import imputer
from heatproof.types import Images, Keep

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def coloured(colour: Sequence[float], images: Images) -> Tensor:
    """The colour as (1, C, 1, 1), ready to fill these images.

    Grey pictures take its mean. So does every channel of pictures that are neither grey nor in colour, where the colour
    is ImageNet's: these numbers are of photos, and no channel is the red one.
    """
    channels = images.shape[1]
    photos = tuple(colour) in (IMAGENET_MEAN, IMAGENET_STD) and channels != len(colour)
    if len(colour) != 1 and (channels == 1 or photos):
        colour = (sum(colour) / len(colour),)
    if len(colour) == 1:
        colour = tuple(colour) * channels
    if len(colour) != channels:
        raise BadInput(
            f"a colour for these images must have {channels} channels, got {tuple(colour)}: give one number per "
            "channel, or one for all"
        )
    return images.new_tensor(colour).view(1, -1, 1, 1)


def repainted(images: Images, keep: Keep, filling: Tensor, room: Images | None = None) -> Images:
    """The images where kept, the filling elsewhere, bit for bit: like `where`, in an eighth of its time on a CPU."""
    share = keep.view(torch.uint8).to(images.dtype)  # converting from bool takes seven times as long
    return torch.lerp(filling, images, share[:, None], out=room)


@imputer
@dataclass(frozen=True)
class Mean:
    """Hidden pixels take one mean colour, by default ImageNet's (zero after the usual normalisation)."""

    colour: tuple[float, ...] = IMAGENET_MEAN

    @property
    def in_words(self) -> str:
        return "ImageNet's mean colour" if self.colour == IMAGENET_MEAN else "one colour"

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        return coloured(self.colour, images)
