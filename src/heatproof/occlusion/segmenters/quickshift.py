"""The quick-shift segmenter: superpixels by mode seeking."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from skimage import segmentation

from heatproof import engine
from heatproof.registry import segmenter
from heatproof.types import Images, Segments


@segmenter
@dataclass(frozen=True)
class Quickshift:
    """Superpixels of similar colour by quick shift; their number depends on the picture.

    Paper: Vedaldi and Soatto 2008, "Quick Shift and Kernel Methods for Mode Seeking"

    The defaults are LIME's.
    """

    kernel_size: float = 4.0
    max_dist: float = 200.0
    ratio: float = 0.2
    reference_side: int | None = 224  # kernel_size applies to pictures of this side and shrinks with smaller ones
    seed: int = 777
    in_words: ClassVar[str] = "superpixels of similar colour (quick shift)"

    def __call__(self, images: Images, /) -> Segments:
        pictures = images.permute(0, 2, 3, 1).double().cpu().numpy()
        with ThreadPoolExecutor(engine.free_cores()) as threads:
            found = list(threads.map(self._cut, pictures))
        empty = np.zeros((0, *images.shape[2:]), np.int64)
        return torch.from_numpy(np.stack(found) if found else empty).to(images.device, torch.int64)

    def _cut(self, picture: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        side = min(picture.shape[:2])
        shrink = min(1.0, side / self.reference_side) if self.reference_side else 1.0
        labels = segmentation.quickshift(
            picture,
            kernel_size=max(1.0, self.kernel_size * shrink),
            max_dist=self.max_dist,
            ratio=self.ratio,
            convert2lab=picture.shape[2] == 3,
            rng=self.seed,
        )
        return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int64)
