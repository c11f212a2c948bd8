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


def blur_matrices(sigmas: Tensor, side: int) -> Tensor:
    """Gaussian blurs along one axis as (sigmas, side, side) float64 matrices; darkness beyond the edge, cut at 4
    sigma.
    """
    sigma = sigmas.double()[:, None]
    reach = (4 * sigma + 0.5).floor()
    distance = torch.arange(max(side, int(reach.max()) + 1), dtype=torch.float64)
    kernels = torch.exp(-0.5 * (distance / sigma.clamp(min=1e-9)) ** 2) * (distance <= reach)
    kernels = (kernels / (2 * kernels.sum(1, keepdim=True) - kernels[:, :1]))[:, :side]
    both = torch.cat([kernels.flip(1), kernels[:, 1:]], 1)  # from one edge to the other
    return both.unfold(1, side, 1).flip(1)  # row i is the kernel centred at i


def blur_and_slope(images: Images, sigmas: Tensor, step: float) -> tuple[Images, Tensor]:
    """Each picture blurred by its own sigma, and how fast it changes as sigma grows, by a forward difference.

    The difference is taken between the blur matrices in float64, not between two float32 pictures that hardly
    differ. Neighbours of one sigma share their matrices.
    """
    different, counts = sigmas.unique_consecutive(return_counts=True)

    def along(side: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        here, there = (blur_matrices(different + ahead, side) for ahead in (0.0, step))
        return list(zip(*(part.to(images) for part in (here, there, (there - here) / step)), strict=True))

    rows = along(images.shape[2])
    columns = rows if images.shape[2] == images.shape[3] else along(images.shape[3])
    blurred, slopes = [], []
    for part, row, column in zip(images.split(counts.tolist()), rows, columns, strict=True):
        # As batches of equal products, so that a picture's bits do not depend on how many there are.
        (down, down_next, down_slope), (over, _, over_slope) = (
            tuple(matrix.expand(*part.shape[:2], -1, -1) for matrix in axis) for axis in (row, column)
        )
        across = part @ over  # the matrices are symmetric
        blurred.append(down @ across)
        slopes.append((down_slope @ across).add_(down_next @ (part @ over_slope)))
    return torch.cat(blurred), torch.cat(slopes)


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
        way = engine.settled(model, images, "gradient")
        # Step by step, so that a blur serves all images.
        for rows in torch.arange(count * self.steps).split(way.choice.size):
            which, step = (rows % count).to(images.device), rows // count
            blurred, slope = blur_and_slope(images[which], nodes[step], self.grad_step)
            gradients, _ = engine.gradient(model, blurred, batch.targets[which], self.readout, way)
            width = widths[step.to(images.device)].view(-1, 1, 1, 1)
            total.index_add_(0, which, slope.mul_(gradients).mul_(-width))  # blurring walks away from the picture
        return total

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)
