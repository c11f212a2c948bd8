"""The pixel segmenter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from heatproof.registry import segmenter
from heatproof.types import Images, Segments


@segmenter
@dataclass(frozen=True)
class Pixels:
    """Every pixel is a segment of its own."""

    in_words: ClassVar[str] = "single pixels"

    def __call__(self, images: Images, /) -> Segments:
        count, _, height, width = images.shape
        labels = torch.arange(height * width, device=images.device).view(height, width)
        return labels.expand(count, -1, -1).contiguous()
