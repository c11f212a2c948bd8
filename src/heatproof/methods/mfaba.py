"""MFABA, boundary-based attribution: down the target's slope until the predicted class changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling, keeps_sign
from heatproof.methods._support.field_checks import check_count, check_positive
from heatproof.methods._support.shared_passes import doubly_softmaxed, reading, slopes
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout


@method
@dataclass(frozen=True)
class MFABA(ChannelPooled):
    """Gradients gathered on the descent from the picture to where the model's predicted class changes.

    Paper: Zhu et al. 2024, "MFABA: A More Faithful and Accelerated Boundary-Based Attribution Method for Deep
    Neural Networks"

    `smooth` steps follow the sign of the gradient, `sharp` ones the gradient itself. The `left` rule weighs
    each step with the gradient at its start and is never negative; `trapezoid` is the paper's second-order
    form. The variant `lmb` adds each gradient to all before it and takes the softmax twice, as the first
    published code does.
    """

    unfit: ClassVar[Unfit] = (("value", "a value has no decision boundary to walk to"),)

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
        images, found = batch.images, torch.empty_like(batch.images)
        questions = doubly_softmaxed if self.variant == "lmb" else reading(model, self.readout)
        way = engine.settled(model, images, "gradient")
        # Of the images that are still walking: their rows, positions, gathered gradients and bounds.
        rows, aims = torch.arange(len(batch), device=images.device), batch.targets
        here, total, bounds = images, torch.zeros_like(images), self._bounds(images)
        step, before = None, None  # the last step, which led to `here`, and the gradient at its start
        for turn in range(self.steps + (self.rule == "trapezoid")):
            (slope,), logits = slopes(model, here, aims[:, None], questions, way)
            if self.variant == "lmb" and before is not None:
                slope = slope + before
            if self.rule == "trapezoid" and step is not None and before is not None:
                total.addcmul_(step, before + slope, value=-0.5)
            walking = logits.argmax(1) == aims
            if turn and not bool(walking.all()):  # all images take the first step
                found[rows] = total  # ended walks keep their total
                on = walking.nonzero()[:, 0]
                if not len(on):
                    break
                rows, aims, here, total, slope = (part[on] for part in (rows, aims, here, total, slope))
                bounds = bounds[:, on] if isinstance(bounds, Tensor) else bounds
            there = self._next(here, slope, *bounds)
            step, before = there - here, slope
            if self.rule == "left":
                total.addcmul_(step, slope, value=-1)
            here = there
        else:
            found[rows] = total
        return found

    def _bounds(self, images: Images) -> Tensor | tuple[float, float]:
        """The lowest and highest values on the walk; one per pixel only where the steps can reach such a bound."""
        if self.walk == "sharp" or self.steps * self.step_size < self.epsilon:
            return 0.0, 1.0
        return torch.stack([images - self.epsilon, images + self.epsilon]).clamp_(0, 1)

    def _next(self, here: Images, slope: Tensor, low: Any, high: Any) -> Images:
        there: Images
        if self.walk == "sharp":
            length = slope.flatten(1).double().norm(dim=1).clamp(min=1e-12).to(slope).view(-1, 1, 1, 1)
            there = here - 100 * self.step_size * slope / length
        else:
            there = here.sub(slope.sign(), alpha=self.step_size)
        return there.clamp_(low, high)
