"""AttEXplore: a walk up the loss whose gradients are averaged over pictures perturbed in frequency."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_not_negative, check_share
from heatproof.methods._support.keyed_noise import fill_with_noise
from heatproof.methods._support.path_gradients import stretches
from heatproof.methods._support.shared_passes import doubly_softmaxed, slopes
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, keyed_seed


def cosine_matrix(side: int) -> Tensor:
    """The orthonormal discrete cosine transform along one axis: (side, side)."""
    place = torch.arange(side, dtype=torch.float64)
    matrix = torch.cos(math.pi / side * (place + 0.5) * place[:, None]) * math.sqrt(2 / side)
    matrix[0] /= math.sqrt(2)
    return matrix


def diversity(size: Tensor, place: Tensor, side: int, largest: float = 257 / 224) -> Tensor:
    """A random resize and shift along one axis, as (B, side, side) matrices: the picture is placed on a dark canvas
    `largest` times its side, and the canvas is resized to the picture's. `size` and `place`: (B,) in [0, 1) each.

    One bilinear resampling replaces two in a row.
    """
    pixel = torch.arange(side, dtype=size.dtype, device=size.device)
    drawn = 1 + size[:, None] * (largest - 1)
    first = place[:, None] * (largest - drawn)
    seen = ((pixel + 0.5) / side * largest - first) / drawn * side - 0.5  # coordinate in the picture
    return (1 - (seen[:, :, None] - pixel).abs_()).clamp_(min=0)


def smoothed(gradients: Tensor) -> Tensor:
    """The gradients under a 7 × 7 Gaussian of standard deviation 1, zero beyond the edge."""
    bell = torch.exp(-0.5 * torch.linspace(-3, 3, 7) ** 2)
    weights = (bell / bell.sum()).tolist()
    height, width = gradients.shape[2:]
    # Sums of shifted copies: unlike a convolution, they give the same bits whatever the number of rows. The walk
    # follows their sign, so bits matter.
    padded = F.pad(gradients, (3, 3, 3, 3))
    rows = torch.zeros_like(padded[:, :, :height])
    for k, weight in enumerate(weights):
        rows += weight * padded[:, :, k : k + height]
    smooth = torch.zeros_like(gradients)
    for k, weight in enumerate(weights):
        smooth += weight * rows[..., k : k + width]
    return smooth


def transformed(rows: Tensor, pictures: Tensor, columns: Tensor) -> Tensor:
    """rows @ picture @ columns for each picture by itself, so that the bits do not depend on how many there are.

    The matrices are (side, side), shared by all pictures (B, C, H, W), or (B, side, side), one per picture.
    """
    left, right = (m.unsqueeze(-3).expand(*pictures.shape[:2], -1, -1).flatten(0, 1) for m in (rows, columns))
    return torch.bmm(torch.bmm(left, pictures.flatten(0, 1)), right).view_as(pictures)


Slope = Callable[[Images, Tensor], Tensor]  # of copies, and of which image each one is


@method("attexplore")
@dataclass(frozen=True)
class AttEXplore(ChannelPooled):
    """Gradients of the loss gathered on a walk across the decision boundary, averaged over
    frequency-perturbed copies.

    Paper: Zhu et al. 2024, "AttEXplore: Attribution for Explanation with Model Parameters Exploration"

    The loss is the cross-entropy of the target. The variant `lmb` walks down the loss instead of up and takes
    the softmax twice, as the published code does.
    """

    random: ClassVar[bool] = True
    unfit: ClassVar[Unfit] = (("value", "it follows the log-probability of a class"),)

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
        check_not_negative("epsilon", self.epsilon)
        check_share("rho", self.rho)
        check_not_negative("sigma", self.sigma)
        check_not_negative("momentum", self.momentum)
        check_share("diversity", self.diversity)

    @property
    def signed(self) -> bool:
        return False  # every step follows the gradient that weights it

    def cost(self) -> Cost:
        return Cost(self.steps * self.draws, self.steps * self.draws)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        images = batch.images
        upwards = 1.0 if self.variant == "clean" else -1.0
        here, velocity, total = images, torch.zeros_like(images), torch.zeros_like(images)
        way = engine.settled(model, images, "gradient")

        def slope(copies: Images, owners: Tensor) -> Tensor:
            return self._loss_slope(model, copies, batch.targets[owners], way)

        for step in range(self.steps):
            climb = smoothed(self.explored(batch.showing(here), step, slope, way.choice.size))
            # In double: how a float32 mean is rounded depends on the number of rows, and a walk magnifies it.
            scale = climb.abs().flatten(1).double().mean(1).clamp(min=1e-12).to(images).view(-1, 1, 1, 1)
            velocity = self.momentum * velocity + climb / scale
            there = here + upwards * self.epsilon / self.steps * velocity.sign()
            there = there.clamp(images - self.epsilon, images + self.epsilon).clamp(0, 1)
            total += upwards * (there - here) * velocity
            here = there
        return total

    def explored(self, batch: Batch, step: int, slope: Slope, size: int) -> Tensor:
        """The slope at each image, averaged over its perturbed copies, of which `size` are made at once."""
        images, seeds = batch.images, batch.seeds("attexplore")
        down, across = (cosine_matrix(side).to(images) for side in images.shape[2:])
        spectrum = transformed(down, images, across.mT)
        total = torch.zeros_like(images)
        features = images[0].numel()
        noise, luck = images.new_empty(size, *images.shape[1:]), images.new_empty(size, features + 4)
        for part in stretches(len(batch), self.draws, size):
            keys = [keyed_seed(seeds[image], step, draw) for image, draws, _ in part for draw in draws]
            mixed, drawn = noise[: len(keys)], luck[: len(keys)]
            fill_with_noise(mixed, keys)
            fill_with_noise(drawn, keys, uniform=True)
            gain, (chance, large, left, top) = drawn[:, :features].view_as(mixed), drawn[:, features:].unbind(1)
            owner = torch.tensor([image for image, draws, _ in part for _ in draws], device=images.device)
            # White noise has white cosine coefficients, so it is added there and saves one transform per copy.
            torch.add(spectrum[owner], mixed, alpha=self.sigma, out=mixed)
            mixed *= gain.mul_(2 * self.rho).add_(1 - self.rho)
            moved = (chance < self.diversity).nonzero().squeeze(1)
            vertical, horizontal = (
                diversity(large[moved], place[moved], side)
                for place, side in zip((top, left), images.shape[2:], strict=True)
            )
            shown = transformed(down.mT, mixed, across)
            shown[moved] = transformed(vertical, shown[moved], horizontal.mT)
            found = slope(shown, owner)
            found[moved] = transformed(vertical.mT, found[moved], horizontal)
            total.index_add_(0, owner, found)
        return total / self.draws

    def _loss_slope(self, model: Model, shown: Images, aims: Tensor, way: engine.Plan) -> Tensor:
        if self.variant == "lmb":
            (slope,), _ = slopes(model, shown, aims[:, None], doubly_softmaxed, way)
        else:
            slope, _ = engine.gradient(model, shown, aims, "log_probability", way)
        return slope.neg_()
