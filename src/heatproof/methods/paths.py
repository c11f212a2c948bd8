"""Weighted gradients at many points per image, in the memory of one micro-batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.models import engine
from heatproof.types import Batch, Images, Model, Readout

# (image indices, point indices) -> that many pictures; both are (rows,) int64 on the images' device.
Points = Callable[[Tensor, Tensor], Images]
Paths = Callable[[Tensor, Tensor], tuple[Images, Images]]  # the pictures, and the step each stands for


def check_count(name: str, count: int) -> None:
    """Refuse zero steps or draws where they are set, not deep inside."""
    if count < 1:
        raise BadInput(f"{name} must be at least 1, got {count}")


def sum_gradients(model: Model, batch: Batch, points: Points, weights: Tensor, readout: Readout = "logit") -> Tensor:
    """Σ_k weights[k] · gradient at point k, per image: (B, C, H, W).

    Only one micro-batch of points exists at a time, however many there are; and an image's sum is added up in
    the order of its points, so neither batch mates nor chunking reach the result. `weights` is (points,) or
    (B, points).
    """
    count = weights.shape[-1]
    table = weights.to(batch.images).expand(len(batch), count)
    total = torch.zeros_like(batch.images)
    way = engine.settled(model, batch.images, "gradient")
    for rows in torch.arange(len(batch) * count, device=batch.images.device).split(way.choice.size):
        image, point = rows // count, rows % count
        slopes, _ = engine.gradient(model, points(image, point), batch.targets[image], readout, way)
        total.index_add_(0, image, slopes.mul_(table[image, point][:, None, None, None]))
    return total


def sum_contributions(model: Model, batch: Batch, points: Paths, count: int, readout: Readout = "logit") -> Tensor:
    """Σ_k steps_k · gradient at point k, per image, where every point has a direction of its own."""
    total = torch.zeros_like(batch.images)
    way = engine.settled(model, batch.images, "gradient")
    for rows in torch.arange(len(batch) * count, device=batch.images.device).split(way.choice.size):
        image, point = rows // count, rows % count
        shown, steps = points(image, point)
        slopes, _ = engine.gradient(model, shown, batch.targets[image], readout, way)
        total.index_add_(0, image, slopes.mul_(steps))
    return total
