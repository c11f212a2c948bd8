"""The grid segmenter."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from heatproof.errors import BadInput
from heatproof.registry import segmenter
from heatproof.types import Images, Segments


@segmenter
@dataclass(frozen=True)
class Grid:
    """A true grid of side × side rectangles, as equal as the picture's size allows."""

    side: int = 5

    @property
    def in_words(self) -> str:
        return f"{self.side**2} rectangles"

    def __post_init__(self) -> None:
        if self.side < 1:
            raise BadInput(f"side of a grid must be at least 1, got {self.side}")

    @property
    def expected(self) -> int:
        return self.side**2

    def __call__(self, images: Images, /) -> Segments:
        height, width = images.shape[2:]
        shortest = min(height, width)
        if self.side > shortest:
            raise BadInput(f"side of a grid must be at most {shortest} on these images, got {self.side}")
        rows = torch.arange(height, device=images.device) * self.side // height
        columns = torch.arange(width, device=images.device) * self.side // width
        return (rows[:, None] * self.side + columns).expand(len(images), -1, -1).contiguous()
