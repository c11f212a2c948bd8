"""Boundary-based attribution: down the target's slope until the answer changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from heatproof.methods.checking import check_count, check_positive
from heatproof.methods.passes import doubly_softmaxed, reading, slopes
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout


@method
@dataclass(frozen=True)
class MFABA:
    """Gradients gathered on the way down from the picture to where the model changes its answer.

    Paper: Zhu et al. 2024, "MFABA: A More Faithful and Accelerated Boundary-Based Attribution Method for Deep
    Neural Networks"

    `smooth` steps follow the sign of the gradient, `sharp` ones the gradient itself. The `left` rule weighs
    each step with the gradient at its start and is never negative; `trapezoid` is the paper's second-order
    form. The variant `lmb` adds each gradient to all before it and takes the softmax twice, as the first
    published code does.
    """

    steps: int = 50  # at most
    step_size: float = 0.001
    epsilon: float = 0.3
    walk: Literal["smooth", "sharp"] = "smooth"
    rule: Literal["left", "trapezoid"] = "left"
    variant: Literal["clean", "lmb"] = "clean"
    readout: Readout = "logit"
    pooling: Pooling = "sum"

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_positive("step_size", self.step_size)
        check_positive("epsilon", self.epsilon, endless=True)

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling) and self.rule == "trapezoid"

    def cost(self) -> Cost:
        passes = self.steps + (self.rule == "trapezoid")
        return Cost(passes, passes)  # at most

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        images = batch.images
        total = torch.zeros_like(images)
        rows = torch.arange(len(batch), device=images.device)  # of images still on their way
        here, before = images, torch.zeros_like(images)
        step = torch.zeros_like(images)  # that led to `here`, with the gradient at its start in `before`
        questions = doubly_softmaxed if self.variant == "lmb" else reading(self.readout)
        way = engine.settled(model, images, "gradient")
        low, high = (images - self.epsilon).clamp_(min=0), (images + self.epsilon).clamp_(max=1)
        for turn in range(self.steps + (self.rule == "trapezoid")):
            (slope,), logits = slopes(model, here, batch.targets[rows, None], questions, way)
            if self.variant == "lmb":
                slope = slope + before
            if self.rule == "trapezoid":
                total.index_add_(0, rows, -step * (before + slope) / 2)
            walking = logits.argmax(1) == batch.targets[rows]
            if turn and not bool(walking.all()):  # everyone takes the first step
                rows, here, slope, low, high = (part[walking] for part in (rows, here, slope, low, high))
                if not len(rows):
                    break
            there = self._next(here, slope, low, high)
            step, before = there - here, slope
            if self.rule == "left":
                total.index_add_(0, rows, step * slope, alpha=-1)
            here = there
        return total

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)

    def _next(self, here: Images, slope: Tensor, low: Images, high: Images) -> Images:
        if self.walk == "sharp":
            length = slope.flatten(1).double().norm(dim=1).clamp(min=1e-12).to(slope).view(-1, 1, 1, 1)
            return torch.clamp(here - 100 * self.step_size * slope / length, 0, 1)
        return here.sub(slope.sign(), alpha=self.step_size).clamp_(low, high)
