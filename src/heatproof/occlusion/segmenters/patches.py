"""The patch segmenter."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from heatproof.errors import BadInput
from heatproof.registry import segmenter
from heatproof.types import Images, Segments


@segmenter
@dataclass(frozen=True)
class Patches:
    """Square patches of a fixed size in pixels, like the tokens of a ViT; cut off at the border."""

    size: int = 16

    @property
    def in_words(self) -> str:
        return f"patches of {self.size}×{self.size} pixels"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise BadInput(f"size of a patch must be at least 1 pixel, got {self.size}")

    def __call__(self, images: Images, /) -> Segments:
        count, _, height, width = images.shape
        rows = torch.arange(height, device=images.device) // self.size
        columns = torch.arange(width, device=images.device) // self.size
        across = -(-width // self.size)
        return (rows[:, None] * across + columns).expand(count, -1, -1).contiguous()
