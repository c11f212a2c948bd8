"""Blur integrated gradients: the path from a blurred picture to the sharp one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.baselines import adds_up
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_positive
from heatproof.methods._support.path_gradients import stretches
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout


def blur_matrices(sigmas: Tensor, side: int) -> Tensor:
    """Gaussian blurs along one axis as (sigmas, side, side) float64 matrices, cut at 4 sigma; zero beyond the edge."""
    sigma = sigmas.double()[:, None]
    reach = (4 * sigma + 0.5).floor()
    distance = torch.arange(max(side, int(reach.max()) + 1), dtype=torch.float64)
    kernels = torch.exp(-0.5 * (distance / sigma.clamp(min=1e-9)) ** 2) * (distance <= reach)
    kernels = (kernels / (2 * kernels.sum(1, keepdim=True) - kernels[:, :1]))[:, :side]
    both = torch.cat([kernels.flip(1), kernels[:, 1:]], 1)  # from one edge to the other
    return both.unfold(1, side, 1).flip(1)  # row i is the kernel centred at i


class Axis(NamedTuple):
    """A blur along one axis, the blur a small step further, and the change per step, as (side, side) matrices."""

    here: Tensor
    ahead: Tensor
    slope: Tensor


def along(sigmas: Tensor, side: int, step: float, like: Images) -> list[Axis]:
    """The blurs of one axis. Differences are taken between float64 matrices, because two float32 pictures that hardly
    differ would leave rounding noise.
    """
    here, ahead = (blur_matrices(sigmas + further, side) for further in (0.0, step))
    parts = (here, ahead, (ahead - here) / step)
    return [Axis(*axis) for axis in zip(*(part.to(like) for part in parts), strict=True)]


def blur_and_slope(images: Images, rows: Axis, columns: Axis, blurred: Images, slope: Tensor) -> None:
    """Writes the blurred pictures, and their change as sigma grows, into preallocated memory."""
    pictures, blurred, slope = (part.flatten(0, 1) for part in (images, blurred, slope))

    # As batches of equal products, so that a picture's bits do not depend on how many there are.
    def each(matrix: Tensor) -> Tensor:
        return matrix.expand(len(pictures), -1, -1)

    across = pictures @ each(columns.here)  # the matrices are symmetric
    torch.bmm(each(rows.here), across, out=blurred)
    torch.bmm(each(rows.slope), across, out=slope)
    slope.baddbmm_(each(rows.ahead), torch.bmm(pictures, each(columns.slope), out=across))


@method
@dataclass(frozen=True)
class BlurIG(ChannelPooled):
    """Integrated gradients along a path of pictures that are blurred less and less.

    Paper: Xu et al. 2020, "Attribution in Scale and Space"
    """

    max_sigma: float = 50.0
    steps: int = 100
    grad_step: float = 0.01
    sqrt: bool = False  # sigma grows with the square root of the step instead of evenly
    reference_side: int | None = (
        224  # max_sigma applies to pictures of this side and scales with theirs; None: no scaling
    )
    readout: Readout = "logit"
    pooling: Pooling = "sum"

    def __post_init__(self) -> None:
        check_positive("max_sigma", self.max_sigma)
        check_count("steps", self.steps)
        check_positive("grad_step", self.grad_step)
        if self.reference_side is not None:
            check_count("reference_side", self.reference_side)

    def cost(self) -> Cost:
        return Cost(self.steps, self.steps)

    def sigmas(self, side: int) -> Tensor:
        """The steps + 1 nodes of the path, from sharp to blurred: (steps + 1,) float64."""
        largest = self.max_sigma * (side / self.reference_side if self.reference_side else 1.0)
        share = torch.linspace(0, 1, self.steps + 1, dtype=torch.float64)
        return share.sqrt() * math.sqrt(largest) if self.sqrt else share * largest

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        images, sides = batch.images, batch.images.shape[2:]
        nodes = self.sigmas(min(sides))
        widths = nodes.diff().tolist()
        total = torch.zeros_like(images)
        way = engine.settled(model, images, "gradient")
        blurred, slopes = (images.new_empty(way.choice.size, *images.shape[1:]) for _ in range(2))
        # Step by step, so that a blur serves all images.
        for part in stretches(self.steps, len(batch), way.choice.size):
            steps = slice(part[0].image, part[-1].image + 1)
            axes = {side: along(nodes[steps], side, self.grad_step, images) for side in set(sides)}
            for (_, which, rows), down, over in zip(part, *(axes[side] for side in sides), strict=True):
                blur_and_slope(images[which.start : which.stop], down, over, blurred[rows], slopes[rows])
            targets = torch.cat([batch.targets[which.start : which.stop] for _, which, _ in part])
            gradients, _ = engine.gradient(model, blurred[: len(targets)], targets, self.readout, way)
            for step, which, rows in part:  # blurring walks away from the picture
                total[which.start : which.stop].addcmul_(slopes[rows], gradients[rows], value=-widths[step])
        return total

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """The sum that maps add up to: the answer's rise over the most blurred picture."""
        adds_up("blur_ig", self.pooling)
        images = batch.images
        largest = self.sigmas(min(images.shape[2:]))[-1:]
        down, over = (blur_matrices(largest, side)[0].to(images) for side in images.shape[2:])
        ends = (engine.forward(model, one) for one in (images, down @ images @ over))
        whole, blurred = (model.read(answer, batch.targets, self.readout).double() for answer in ends)
        return whole - blurred
