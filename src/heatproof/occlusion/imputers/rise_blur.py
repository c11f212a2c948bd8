"""Hidden pixels take those of the picture as RISE's insertion blurs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from heatproof.errors import BadInput
from heatproof.occlusion.imputers.mean import repainted
from heatproof.registry import imputer
from heatproof.types import Images, Keep


@imputer
@dataclass(frozen=True)
class RiseBlur:
    """Hidden pixels take the colours of the original under a small kernel of nearly equal weights.

    The kernel is a Gaussian cut off near its middle, so it blurs less than its sigma says. The border is repeated
    outwards.

    Paper: Petsiuk et al. 2018, "RISE: Randomized Input Sampling for Explanation of Black-box Models"
    """

    kernel: int = 11  # pixels to a side
    sigma: float = 5.0  # in pixels

    def __post_init__(self) -> None:
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise BadInput(f"kernel of rise_blur must be an odd number of pixels, got {self.kernel}")
        if self.sigma <= 0:
            raise BadInput(f"sigma of rise_blur must be positive, got {self.sigma}")

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        # One picture under many masks comes as a view of itself: blur it once.
        repeated = len(images) > 1 and images.stride(0) == 0
        # One row at a time: what a row becomes must not depend on how many others there are.
        rows = [self._blurred(row[None]) for row in (images[:1] if repeated else images)]
        return torch.cat(rows) if rows else images

    def _blurred(self, image: Images) -> Images:
        radius, channels = self.kernel // 2, image.shape[1]
        offsets = torch.arange(-radius, radius + 1, dtype=image.dtype, device=image.device)
        bell = torch.exp(-0.5 * (offsets / self.sigma) ** 2)
        weights = torch.outer(bell, bell) / bell.sum() ** 2
        padded = functional.pad(image, (radius,) * 4, "replicate")
        return functional.conv2d(padded, weights.expand(channels, 1, -1, -1), groups=channels).clamp(0, 1)
