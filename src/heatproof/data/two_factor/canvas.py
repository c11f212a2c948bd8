"""The canvas a scene painter draws on, and the painting it returns."""

from dataclasses import dataclass

import numpy as np

from heatproof.data.two_factor.dice import Floats


@dataclass(frozen=True, eq=False)
class Canvas:
    """Pixel centres in the unit square: x (1, W) to the right, y (H, 1) down; `pixel` is a pixel's side.

    A row and a column rather than two full grids: what depends on one of them alone costs next to nothing.
    """

    x: Floats
    y: Floats
    pixel: float

    @classmethod
    def of(cls, size: int) -> "Canvas":
        """The square canvas with `size` pixels on a side."""
        centres = (np.arange(size) + 0.5) / size
        return cls(centres[None, :], centres[:, None], 1.0 / size)


@dataclass(frozen=True, eq=False)
class Painting:
    """Tone (dark to light, relative, rescaled later) and tint in [0, 1] (which of two ramps)."""

    tone: Floats
    tint: Floats
