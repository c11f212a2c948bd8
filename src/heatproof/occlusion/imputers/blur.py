"""The blur imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from heatproof.errors import BadInput
from heatproof.occlusion.imputers.mean import repainted
from heatproof.registry import imputer
from heatproof.types import Images, Keep


def blurred(images: Images, sigma: float, kernel: int | None = None) -> Images:
    """A Gaussian blur, sigma in pixels, cut off at 3 sigma or to `kernel` pixels; the border is repeated outwards."""
    radius = max(1, round(3 * sigma)) if kernel is None else kernel // 2
    offsets = torch.arange(-radius, radius + 1, dtype=images.dtype, device=images.device)
    weights = torch.exp(-0.5 * (offsets / sigma) ** 2)
    weights = weights / weights.sum()
    return _along(_along(images, weights, radius, 3), weights, radius, 2).clamp(0, 1)


def _along(images: Images, weights: Tensor, radius: int, axis: int) -> Images:
    channels = images.shape[1]
    shape, pad = ((1, 1, 1, -1), (radius, radius, 0, 0)) if axis == 3 else ((1, 1, -1, 1), (0, 0, radius, radius))
    bell = weights.view(shape).expand(channels, -1, -1, -1)
    # One row at a time, so that a row's bits do not depend on the number of rows.
    rows = [functional.conv2d(functional.pad(row[None], pad, "replicate"), bell, groups=channels) for row in images]
    return torch.cat(rows) if rows else images


@imputer
@dataclass(frozen=True)
class Blur:
    """Hidden pixels take the colours of the blurred original, so coarse evidence stays visible on purpose.

    Paper: Fong and Vedaldi 2017, "Interpretable Explanations of Black Boxes by Meaningful Perturbation"
    """

    sigma: float = 10.0  # in pixels
    kernel: int | None = None  # pixels per side; RISE's 11 for a sigma of 5 cut the Gaussian near its middle
    in_words: ClassVar[str] = "the blurred picture"

    def __post_init__(self) -> None:
        if self.sigma <= 0:
            raise BadInput(f"sigma must be positive, got {self.sigma}")
        if self.kernel is not None and (self.kernel < 1 or self.kernel % 2 == 0):
            raise BadInput(f"kernel must be an odd number of pixels, got {self.kernel}")

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        # One picture under many masks comes as an expanded view: it is blurred once.
        repeated = len(images) > 1 and images.stride(0) == 0
        return blurred(images[:1] if repeated else images, self.sigma, self.kernel)
