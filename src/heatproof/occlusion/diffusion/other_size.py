"""A prior of one size serves pictures of any: they are drawn at its size, enlarged, and laid on hidden pixels only.

A cell of the small picture is known where any of its pixels is kept, and is then the mean of these alone: what is
hidden never reaches the prior. Kept pixels of the large picture stay as they are, bit for bit. Detail finer than a
cell cannot be drawn; in a cell that is known in part, hidden pixels get about the mean of the kept ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from heatproof.types import Images, Keep


def shrunk(images: Images, keep: Keep, side: int) -> tuple[Images, Keep]:
    """The pictures and what is kept of them, at the prior's size; unknown cells are mid-grey."""
    shares = functional.adaptive_avg_pool2d(keep[:, None].to(images), side)
    sums = functional.adaptive_avg_pool2d(images * keep[:, None], side)
    known = shares > 0
    return torch.where(known, sums / shares.clamp_min(1e-12), torch.full_like(sums, 0.5)), known[:, 0]


def enlarged(small: Tensor, size: tuple[int, int]) -> Tensor:
    """A small picture at the size (height, width) of the large one."""
    return functional.interpolate(small, size=size, mode="bilinear", align_corners=False)


def laid_on(small: Images, images: Images, keep: Keep) -> Images:
    """The large pictures, with hidden pixels from the small ones."""
    height, width = images.shape[2:]
    return torch.where(keep[:, None], images, enlarged(small, (height, width)).clamp(0, 1))


@dataclass(frozen=True, eq=False)
class Frame:
    """The large pictures that a classifier looks at while the prior draws small ones; one per row."""

    images: Images
    keep: Keep

    def whole(self, small: Images, rows: Tensor) -> Images:
        """The large pictures with what has been drawn so far."""
        return laid_on(small, self.images[rows], self.keep[rows])

    def back(self, slopes: Tensor, small: Images, rows: Tensor) -> Tensor:
        """Gradients at large pictures as gradients at the small ones: the adjoint of `whole`."""
        height, width = self.images.shape[2:]
        hidden = torch.where(self.keep[rows][:, None], torch.zeros_like(slopes), slopes)
        with torch.enable_grad():
            at = torch.zeros_like(small, requires_grad=True)
            (found,) = torch.autograd.grad(enlarged(at, (height, width)), at, hidden)
        return found
