"""Guided integrated gradients: a path that moves the features the model cares least about first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from heatproof.methods.baselines import Baseline, start
from heatproof.methods.passes import doubly_softmaxed, slopes
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout


def kth_smallest(values: Tensor, k: int) -> Tensor:
    """The k-th smallest value (k from 1) of each row: (rows,)."""
    if values.device.type != "cpu":
        return values.kthvalue(k, dim=1).values
    # numpy selects with vector instructions: 20 times faster than torch.kthvalue on 150 000 features
    return torch.tensor([np.partition(row, k - 1)[k - 1] for row in values.numpy()], dtype=values.dtype)


def advance(
    position: Tensor, weights: Tensor, steepness: Tensor, goal: float, fraction: float, max_dist: float
) -> Tensor:
    """One step of the path, in shares of the way already walked by each feature.

    Arguments are (B, features): the share of its way each feature has walked, the length of its way, and how
    strongly the model reacts to it. Until the mean share (weighted by length) is `goal`, the `fraction` of
    features with the least reaction walk on, none further than `max_dist` from the straight line.
    """
    low, high = max(goal - max_dist, 0.0), min(goal + max_dist, 1.0)
    position = position.clamp(min=low)
    total = weights.sum(1)
    slack = 1e-9 * total.clamp(min=1.0)
    gap = goal * total - (weights * position).sum(1)
    never = torch.finfo(steepness.dtype).max  # stands for features that cannot move further
    below = float(np.nextafter(never, 0, dtype=np.dtype(str(steepness.dtype).removeprefix("torch."))))
    room = weights * (high - position)
    steepness = torch.maximum(steepness, (room <= 0).to(steepness.dtype) * never)
    top = torch.tensor(high, dtype=position.dtype, device=position.device)
    count = int(fraction * (weights.shape[1] - 1)) + 1
    for _ in range(int(1 / fraction) + 2):  # ties only make the portions larger, so this many are enough
        if bool((gap <= slack).all()):
            break
        chosen = steepness <= kth_smallest(steepness, count).clamp(max=below)[:, None]
        taken = chosen.to(position.dtype)  # arithmetic instead of `where`, which takes several times as long
        reach = torch.einsum("bn,bn->b", room, taken)
        share = torch.where(reach > 0, gap / reach, 1.0).clamp(0, 1) * (gap > slack)
        position = torch.lerp(position, top, taken * share[:, None])
        gap = gap - share * reach
        steepness = torch.maximum(steepness, chosen.to(steepness.dtype) * never)
    return position


@method
@dataclass(frozen=True)
class GuidedIG:
    """Integrated gradients along a path that moves the features with the smallest gradients first.

    Paper: Kapishnikov et al. 2021, "Guided Integrated Gradients: An Adaptive Path Method for Removing Noise"

    The variant `lmb` takes the softmax twice, as one published code does, and then ignores `readout`.
    """

    steps: int = 200
    fraction: float = 0.25
    max_dist: float = 0.02
    baseline: Baseline = "black"
    variant: Literal["clean", "lmb"] = "clean"
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        origin = start(self.baseline, model, batch)
        way = (batch.images - origin).double().flatten(1)
        weights = way.abs()
        position = torch.zeros_like(way)
        total = torch.zeros_like(way)
        for step in range(self.steps):
            here = origin + (position * way).view_as(origin).to(origin.dtype)
            slope = self._slope(model, here, batch.targets).flatten(1)
            goal = (step + 1) / self.steps
            moved = advance(position, weights, slope.abs(), goal, self.fraction, self.max_dist)
            total += (moved - position).mul_(way).mul_(slope)
            position = moved
        return total.view_as(origin).to(batch.images.dtype)

    def _slope(self, model: Model, images: Images, targets: Tensor) -> Tensor:
        if self.variant == "lmb":
            (slope,), logits = slopes(model, images, targets[:, None], doubly_softmaxed)
            inner = logits.softmax(1).softmax(1).gather(1, targets[:, None])
            return slope * inner[:, :, None, None]  # from the log-probability to the probability
        return engine.gradient(model, images, targets, self.readout)[0]

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)

    def cost(self) -> Cost:
        return Cost(self.steps, self.steps)
