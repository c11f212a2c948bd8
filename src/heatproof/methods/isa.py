"""Iterative search attribution: the weakest features are removed first; those removed last matter most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_not_negative, check_positive
from heatproof.methods._support.shared_passes import doubly_softmaxed, slopes
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, read


@method
@dataclass(frozen=True)
class ISA(ChannelPooled):
    """The round in which each feature is removed, when every round removes the least important ones.

    Paper: Zhu et al. 2024, "Iterative Search Attribution for Deep Neural Networks"

    In each round a feature is important if the loss reacts to it on a short climb and a short descent from
    the picture without the features removed before. The variant `lmb` gives the last, incomplete chunk the
    importance zero, adds the smallest score instead of subtracting it and takes the softmax twice, as the
    published code does.
    """

    random: ClassVar[bool] = True
    unfit: ClassVar[Unfit] = (("value", "it follows the log-probability of a class"),)

    rounds: int = 31  # chunks of 5000 features at 3 × 224 × 224
    steps: int = 8  # per direction and round
    step_size: float = 0.002
    noise: float = 0.05
    penalty: float = 0.01
    scale: float = 1.1
    variant: Literal["clean", "lmb"] = "clean"
    pooling: Pooling = "sum"

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds)
        check_count("steps", self.steps)
        check_positive("step_size", self.step_size)
        check_not_negative("noise", self.noise)
        check_not_negative("penalty", self.penalty)
        check_not_negative("scale", self.scale)

    @property
    def signed(self) -> bool:
        return False

    def cost(self) -> Cost:
        passes = 2 * self.steps * self.rounds
        return Cost(passes, passes)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        images = batch.images.flatten(1)
        left = torch.ones_like(images, dtype=torch.bool)
        importance = torch.zeros_like(images)
        chunk = -(-images.shape[1] // self.rounds)
        generators = batch.generators("isa")
        for turn in range(self.rounds):
            count = min(chunk, images.shape[1] - turn * chunk)
            if count <= 0 or (count < chunk and self.variant == "lmb"):
                break
            score = self._score(model, batch, left.view_as(batch.images), generators)
            score = score.to(images).masked_fill(~left, torch.inf)
            weakest, where = score.topk(count, largest=False)
            low, high = weakest[:, :1], weakest[:, -1:]
            share = (weakest - low) / (high - low).clamp(min=1e-12)
            importance.scatter_(1, where, turn + self.scale * share)
            left.scatter_(1, where, False)
        return importance.view_as(batch.images)

    def _score(self, model: Model, batch: Batch, left: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
        """How strongly the loss reacts to each feature: (B, features)."""
        count = len(batch)
        up = torch.ones(2 * count, 1, 1, 1, device=left.device)  # first the climbs of all images, then their descents
        up[count:] = -1
        kept = torch.cat([torch.ones_like(left), left]).to(batch.images)
        here = (batch.images * left).repeat(2, 1, 1, 1)
        total = torch.zeros_like(here)
        first = last = up.flatten()
        targets = batch.targets.repeat(2)
        way = engine.settled(model, here, "gradient")
        for step in range(self.steps):
            luck = [torch.randn(2, *batch.images.shape[1:], generator=generator) for generator in generators]
            noise = torch.stack(luck, 1).flatten(0, 1).to(here)
            slope, value = self._log_probability(model, noise.mul_(self.noise).add_(here), targets, way)
            norm = here.flatten(1).double().norm(dim=1).to(here)  # rounded alike whatever the batch mates
            last = -value - self.penalty * up.flatten() * norm
            first = last if step == 0 else first
            pull = self.penalty * up / norm.clamp(min=1e-12).view(-1, 1, 1, 1)
            loss_slope = slope.addcmul_(pull, here).mul_(kept).neg_()
            total.add_(loss_slope.abs(), alpha=self.step_size)
            here = torch.addcmul(here, self.step_size * up, loss_slope.sign_())
        change = (up.flatten() * (last - first)).clamp(min=1e-6)  # not zero even after a walk that did not move
        climbed, descended = (total / change.view(-1, 1, 1, 1)).flatten(1).chunk(2)
        reaction = climbed + descended
        floor = reaction.amin(1, keepdim=True)
        reaction = reaction + floor if self.variant == "lmb" else reaction - floor
        return (reaction * batch.images.flatten(1)).abs()

    def _log_probability(
        self, model: Model, images: Images, targets: Tensor, way: engine.Plan
    ) -> tuple[Tensor, Tensor]:
        if self.variant == "clean":
            return engine.gradient(model, images, targets, "log_probability", way)
        (slope,), logits = slopes(model, images, targets[:, None], doubly_softmaxed, way)
        return slope, read(logits.softmax(1), targets, "log_probability")
