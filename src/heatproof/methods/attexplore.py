"""AttEXplore: a walk up the loss whose gradients are averaged over pictures perturbed in frequency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.methods.passes import doubly_softmaxed, slopes
from heatproof.methods.paths import check_count
from heatproof.methods.pooling import Pooling, pool
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model


def cosine_matrix(side: int) -> Tensor:
    """The orthonormal discrete cosine transform along one axis: (side, side)."""
    place = torch.arange(side, dtype=torch.float64)
    matrix = torch.cos(math.pi / side * (place + 0.5) * place[:, None]) * math.sqrt(2 / side)
    matrix[0] /= math.sqrt(2)
    return matrix


def diversified(images: Images, luck: Tensor, largest: float = 257 / 224) -> Images:
    """Each picture drawn at a random size on a dark canvas `largest` times its side, seen at the old size
    again.

    `luck` (B, 3) in [0, 1): the size, and where on the canvas. One affine resampling instead of two in a row.
    """
    size = 1 + luck[:, 0] * (largest - 1)
    slack = largest - size
    scale = largest / size
    theta = images.new_zeros(len(images), 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = scale
    theta[:, :, 2] = (largest - 2 * luck[:, 1:] * slack[:, None]) / size[:, None] - 1
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="zeros", align_corners=False)


def smoothed(gradients: Tensor) -> Tensor:
    """A 7 × 7 Gaussian of standard deviation 1, darkness beyond the edge."""
    bell = torch.exp(-0.5 * torch.linspace(-3, 3, 7) ** 2)
    weights = (bell / bell.sum()).tolist()
    height, width = gradients.shape[2:]
    # Sums of shifted copies: unlike a convolution, the same bits whatever the number of rows (their sign is
    # followed).
    padded = F.pad(gradients, (3, 3, 3, 3))
    rows = torch.zeros_like(padded[:, :, :height])
    for k, weight in enumerate(weights):
        rows += weight * padded[:, :, k : k + height]
    smooth = torch.zeros_like(gradients)
    for k, weight in enumerate(weights):
        smooth += weight * rows[..., k : k + width]
    return smooth


def transformed(rows: Tensor, pictures: Tensor, columns: Tensor) -> Tensor:
    """rows @ picture @ columns for each picture by itself, so that the bits do not depend on how many there
    are.
    """
    flat = pictures.flatten(0, 1)
    left = rows.expand(len(flat), -1, -1)
    return torch.bmm(torch.bmm(left, flat), columns.expand(len(flat), -1, -1)).view_as(pictures)


def draw(shape: torch.Size, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """What one copy draws: noise and a uniform gain for every frequency, and four more uniform numbers."""
    noise = torch.randn(shape, generator=generator)
    return noise, torch.rand(shape, generator=generator), torch.rand(4, generator=generator)


@method("attexplore")
@dataclass(frozen=True)
class AttEXplore:
    """Gradients of the loss gathered on a walk across the decision boundary, averaged over
    frequency-perturbed copies.

    Paper: Zhu et al. 2024, "AttEXplore: Attribution for Explanation with Model Parameters Exploration"

    The loss is the cross-entropy of the target. The variant `lmb` walks down the loss instead of up and takes
    the softmax twice, as the published code does.
    """

    steps: int = 10
    draws: int = 20
    epsilon: float = 16 / 255
    rho: float = 0.5  # frequencies are scaled by 1 - rho to 1 + rho
    sigma: float = 16 / 255  # of the noise added to each copy
    momentum: float = 1.0
    diversity: float = 0.5  # share of copies that are moved and resized
    variant: Literal["clean", "lmb"] = "clean"
    pooling: Pooling = "sum"

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("draws", self.draws)

    @property
    def signed(self) -> bool:
        return False  # every step goes along the gradient it is weighed with

    def cost(self) -> Cost:
        return Cost(self.steps * self.draws, self.steps * self.draws)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        images = batch.images
        generators = batch.generators("attexplore")
        upwards = 1.0 if self.variant == "clean" else -1.0
        here, velocity, total = images, torch.zeros_like(images), torch.zeros_like(images)
        for _ in range(self.steps):
            climb = smoothed(self._explore(model, batch.showing(here), generators))
            # In double: how a float32 mean is rounded depends on the number of rows, and a walk magnifies it.
            scale = climb.abs().flatten(1).double().mean(1).clamp(min=1e-12).to(images).view(-1, 1, 1, 1)
            velocity = self.momentum * velocity + climb / scale
            there = here + upwards * self.epsilon / self.steps * velocity.sign()
            there = there.clamp(images - self.epsilon, images + self.epsilon).clamp(0, 1)
            total += upwards * (there - here) * velocity
            here = there
        return total

    def _explore(self, model: Model, batch: Batch, generators: Sequence[torch.Generator]) -> Tensor:
        """The loss gradient at each image, averaged over its perturbed copies."""
        images = batch.images
        rows, columns = (cosine_matrix(side).to(images) for side in images.shape[2:])
        spectrum = transformed(rows, images, columns.mT)
        total = torch.zeros_like(images)
        way = engine.settled(model, images, "gradient")
        for which in torch.arange(len(batch)).repeat_interleave(self.draws).split(way.choice.size):
            owner = which.to(images.device)
            # Copy by copy, so that where a micro-batch ends does not shift what an image draws.
            drawn = [draw(images.shape[1:], generators[i]) for i in which.tolist()]
            noise, gain, luck = (torch.stack(column).to(images) for column in zip(*drawn, strict=True))
            # White noise has white cosine coefficients, so it is added there and saves one transform per
            # copy.
            mixed = noise.mul_(self.sigma).add_(spectrum[owner])
            mixed *= gain.mul_(2 * self.rho).add_(1 - self.rho)
            copies = transformed(rows.mT, mixed, columns)
            total.index_add_(0, owner, self._loss_slope(model, batch, owner, copies, luck, way))
        return total / self.draws

    def _loss_slope(
        self, model: Model, batch: Batch, owner: Tensor, copies: Images, luck: Tensor, way: engine.Plan
    ) -> Tensor:
        """The gradient of the loss by the copies, some of which the model sees moved and resized."""
        moved = (luck[:, 0] < self.diversity).nonzero().squeeze(1)
        aims, shown = batch.targets[owner], copies
        if len(moved):
            with torch.inference_mode(False), torch.enable_grad():
                leaves = copies[moved].requires_grad_()  # chosen rows are copies
                seen = diversified(leaves, luck[moved, 1:])
            shown = copies.index_copy(0, moved, seen.detach())
        if self.variant == "lmb":
            (slope,), _ = slopes(model, shown, aims[:, None], doubly_softmaxed, way)
        else:
            slope, _ = engine.gradient(model, shown, aims, "log_probability", way)
        if len(moved):
            with torch.inference_mode(False):
                (back,) = torch.autograd.grad(seen, leaves, slope[moved])
            slope = slope.index_copy(0, moved, back)
        return -slope

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)
