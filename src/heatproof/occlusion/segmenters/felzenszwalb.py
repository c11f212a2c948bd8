"""Felzenszwalb and Huttenlocher's segmentation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import torch
from skimage.segmentation import felzenszwalb

from heatproof.occlusion.segments import relabelled
from heatproof.registry import segmenter
from heatproof.types import Images, Segments


@segmenter
@dataclass(frozen=True)
class Felzenszwalb:
    """Regions of even colour, as many as the picture has: merged along a minimum spanning tree.

    Paper: Felzenszwalb and Huttenlocher 2004, "Efficient Graph-Based Image Segmentation"
    """

    scale: float = 100.0  # larger gives larger regions
    sigma: float = 0.8
    min_size: int = 20
    in_words: ClassVar[str] = "regions of even colour (Felzenszwalb)"

    def __call__(self, images: Images, /) -> Segments:
        pictures = images.permute(0, 2, 3, 1).double().cpu().numpy()
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Got image with third dimension"
            )  # of other than three channels: meant so
            cut = [felzenszwalb(picture, self.scale, self.sigma, self.min_size) for picture in pictures]
        labels = [relabelled(one) for one in cut]
        return torch.stack(labels).to(images.device) if labels else images.new_zeros(0, *images.shape[2:]).long()
