"""Adversarial gradient integration: walks from the picture towards other classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_positive
from heatproof.methods._support.shared_passes import class_count, other_classes, reading, slopes
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout

Path = Literal["anchored", "cumulative"]


@method
@dataclass(frozen=True)
class AGI(ChannelPooled):
    """The drop of the target's answer along walks from the picture towards other classes, drawn for each image.

    Paper: Pan et al. 2021, "Explaining Deep Neural Network Models with Adversarial Gradient Integration"

    The published code takes every step from the original picture (`anchored`), the paper's formula from the
    last point (`cumulative`). A walk ends early once the model answers with the class it goes to.
    """

    random: ClassVar[bool] = True
    unfit: ClassVar[Unfit] = (("value", "a value has no other class to walk towards"),)

    classes: int = 20  # at most all but the target
    steps: int = 20  # at most, per class
    epsilon: float = 0.05
    path: Path = "anchored"
    readout: Readout = "logit"
    pooling: Pooling = "sum"

    def __post_init__(self) -> None:
        check_count("classes", self.classes)
        check_count("steps", self.steps)
        check_positive("epsilon", self.epsilon)

    def cost(self) -> Cost:
        return Cost(self.classes * self.steps, 2 * self.classes * self.steps)  # at most

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        count = class_count(model, batch.images)
        others = other_classes(batch.generators("agi"), batch.targets, count, self.classes)
        size = engine.batch_size(model, batch.images, "gradient")
        parts = zip(batch.images.split(size), batch.targets.split(size), others.split(size), strict=True)
        return torch.cat([self._walk(model, *part) for part in parts])

    def _walk(self, model: Model, images: Images, targets: Tensor, others: Tensor) -> Tensor:
        """All walks of some images side by side, one row per image and class."""
        total = torch.zeros_like(images)
        owner = torch.arange(len(images), device=images.device).repeat_interleave(others.shape[1])
        aims = torch.stack([others.flatten(), targets[owner]], 1)
        here = images[owner]
        way = engine.settled(model, images, "gradient")
        for _ in range(self.steps):
            (towards, loss), logits = slopes(model, here, aims, reading(model, self.readout), way)
            walking = logits.argmax(1) != aims[:, 0]  # read from the forward that the slopes need anyway
            owner, aims, here, towards, loss = (t[walking] for t in (owner, aims, here, towards, loss))
            if not len(owner):
                break
            start = images[owner] if self.path == "anchored" else here
            there = (start + self.epsilon * towards.sign()).clamp(0, 1)
            total.index_add_(0, owner, -loss * (there - start))
            here = there
        return total
