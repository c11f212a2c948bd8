"""The squares segmenter: superpixels so compact that they are nearly squares."""

from __future__ import annotations

from dataclasses import dataclass

from heatproof.occlusion.segmenters.slic import superpixels
from heatproof.registry import segmenter
from heatproof.types import Images, Segments


@segmenter
@dataclass(frozen=True)
class Squares:
    """Nearly square superpixels: SLIC at high compactness, as in the paper; `grid` gives true rectangles.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    n: int = 25
    compactness: float = 10.0

    @property
    def in_words(self) -> str:
        return f"about {self.n} nearly square superpixels"

    @property
    def expected(self) -> int:
        return self.n

    def __call__(self, images: Images, /) -> Segments:
        return superpixels(images, self.n, self.compactness, "grey")
