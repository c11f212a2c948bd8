"""Blur integrated gradients: the path from a blurred picture to the sharp one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout


def blur_matrix(sigma: float, side: int) -> Tensor:
    """A Gaussian blur along one axis as a (side, side) float64 matrix; darkness beyond the edge, cut at 4
    sigma.
    """
    reach = int(4 * sigma + 0.5)
    distance = torch.arange(max(side, reach + 1), dtype=torch.float64)
    kernel = torch.exp(-0.5 * (distance / sigma) ** 2) * (distance <= reach) if reach else (distance == 0).double()
    kernel = kernel / (2 * kernel.sum() - kernel[0])
    place = torch.arange(side)
    return kernel[(place[:, None] - place).abs()]


def blur_and_slope(images: Images, sigmas: Tensor, step: float) -> tuple[Images, Tensor]:
    """Each picture blurred by its own sigma, and how fast it changes as sigma grows, by a forward difference.

    The difference is taken between the blur matrices in float64, not between two float32 pictures that hardly
    differ.
    """
    different, which = sigmas.unique(return_inverse=True)

    def stacked(side: int) -> tuple[Tensor, Tensor, Tensor]:
        here = torch.stack([blur_matrix(sigma, side) for sigma in different.tolist()])
        there = torch.stack([blur_matrix(sigma + step, side) for sigma in different.tolist()])
        parts = (here, there, (there - here) / step)
        return tuple(part.to(images)[which][:, None] for part in parts)  # type: ignore[return-value]

    rows_here, rows_there, rows_slope = stacked(images.shape[2])
    columns_here, _, columns_slope = stacked(images.shape[3])
    across = images @ columns_here.mT
    slope = rows_slope @ across + rows_there @ (images @ columns_slope.mT)
    return rows_here @ across, slope


@method
@dataclass(frozen=True)
class BlurIG:
    """Integrated gradients along a path of pictures that are blurred less and less.

    Paper: Xu et al. 2020, "Attribution in Scale and Space"
    """

    max_sigma: float = 50.0
    steps: int = 100
    grad_step: float = 0.01
    sqrt: bool = False  # sigma grows with the square root of the step instead of evenly
    reference_side: int | None = (
        224  # max_sigma is meant for pictures of this side and scales with theirs; none: as it is
    )
    readout: Readout = "logit"
    pooling: Pooling = "sum"

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling)

    def cost(self) -> Cost:
        return Cost(self.steps, self.steps)

    def sigmas(self, side: int) -> Tensor:
        """The steps + 1 nodes of the path, from sharp to blurred: (steps + 1,) float64."""
        largest = self.max_sigma * (side / self.reference_side if self.reference_side else 1.0)
        share = torch.linspace(0, 1, self.steps + 1, dtype=torch.float64)
        return share.sqrt() * math.sqrt(largest) if self.sqrt else share * largest

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        images, count = batch.images, len(batch)
        nodes = self.sigmas(min(images.shape[2:]))
        widths = nodes.diff().to(images.device, images.dtype)
        total = torch.zeros_like(images)
        size = engine.batch_size(model, images, "gradient")
        for rows in torch.arange(count * self.steps).split(size):  # step by step, so that a blur serves all images
            which, step = (rows % count).to(images.device), rows // count
            blurred, slope = blur_and_slope(images[which], nodes[step], self.grad_step)
            gradients, _ = engine.gradient(model, blurred, batch.targets[which], self.readout)
            width = widths[step.to(images.device)].view(-1, 1, 1, 1)
            total.index_add_(0, which, -width * slope * gradients)  # blurring walks away from the picture
        return total

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)
