"""Local attribution: walks towards other classes and away from the target, within a box that scales with the
pixel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_positive
from heatproof.methods._support.shared_passes import class_count, other_classes, reading, slopes
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout


@method
@dataclass(frozen=True)
class LocalAttribution(ChannelPooled):
    """The drop of the target's answer in steps towards other classes and away from it, in a box proportional to each
    pixel.

    Paper: Zhu et al. 2024, "Enhancing Model Interpretability with Local Attribution over Global Exploration"
    """

    random: ClassVar[bool] = True
    unfit: ClassVar[Unfit] = (("value", "a value has no other class to walk towards"),)

    classes: int = 20  # walks: one away from the target, the others towards drawn classes
    steps: int = 20
    scale: float = 20.0  # a pixel moves by its value divided by this
    readout: Readout = "logit"
    pooling: Pooling = "sum"

    def __post_init__(self) -> None:
        check_count("classes", self.classes)
        check_count("steps", self.steps)
        check_positive("scale", self.scale)

    def cost(self) -> Cost:
        targeted = (self.classes - 1) * self.steps
        return Cost(targeted + self.steps, 2 * targeted + self.steps)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        count = class_count(model, batch.images)
        others = other_classes(batch.generators("local_attribution"), batch.targets, count, self.classes - 1)
        size = engine.batch_size(model, batch.images, "gradient")
        parts = list(zip(batch.images.split(size), batch.targets.split(size), others.split(size), strict=True))
        towards = torch.cat([self._towards(model, *part) for part in parts])
        away = torch.cat([self._away(model, images, targets) for images, targets, _ in parts])
        return towards + away

    def _towards(self, model: Model, images: Images, targets: Tensor, others: Tensor) -> Tensor:
        """The targeted walks of some images side by side, one row per image and class."""
        total = torch.zeros_like(images)
        owner = torch.arange(len(images), device=images.device).repeat_interleave(others.shape[1])
        if not len(owner):
            return total
        aims = torch.stack([others.flatten(), targets[owner]], 1)
        start = images[owner]
        here = start
        reach = start / self.scale
        way = engine.settled(model, images, "gradient")
        for _ in range(self.steps):
            (gain, loss), _ = slopes(model, here, aims, reading(model, self.readout), way)
            here = torch.addcmul(start, reach, gain.sign_()).clamp_(0, 1)
            total.index_add_(0, owner, -loss * (here - start))
        return total

    def _away(self, model: Model, images: Images, targets: Tensor) -> Tensor:
        total = torch.zeros_like(images)
        here = images
        way = engine.settled(model, images, "gradient")
        for _ in range(self.steps):
            loss, _ = engine.gradient(model, here, targets, self.readout, way)
            here = (images - images / self.scale * loss.sign()).clamp(0, 1)
            total -= loss * (here - images)
        return total
