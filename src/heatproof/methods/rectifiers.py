"""Backward passes that treat rectifiers differently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.errors import NotApplicable
from heatproof.methods import intercept
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Maps, Model, Readout

Rule = Literal["guided", "deconvnet"]


class Clamped(torch.autograd.Function):
    """min(max(x, 0), top), letting every positive gradient back, whether x passed or not."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, top: float, inplace: bool) -> Tensor:
        if inplace:
            ctx.mark_dirty(values)
            return values.clamp_(0, top)
        return values.clamp(0, top)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        return slopes[0].clamp(min=0), None, None


def rectified(values: Tensor, rule: Rule, top: float, inplace: bool) -> Tensor:
    """A rectifier whose way back follows the rule."""
    if rule == "deconvnet":
        return Clamped.apply(values, top, inplace)  # type: ignore[no-any-return,no-untyped-call]
    # Guided: the rectifier's own way back, of what is positive.
    passed = F.relu(values, inplace) if top == torch.inf else F.hardtanh(values, 0.0, top, inplace)
    if passed.requires_grad:
        passed.register_hook(lambda slope: slope.clamp(min=0))  # type: ignore[no-untyped-call]
    return passed


def rectified_gradient(model: Model, batch: Batch, rule: Rule, readout: Readout) -> Tensor:
    """Input gradients with every ReLU and ReLU6 replaced, module, function or in place: (B, C, H, W)."""
    met: list[bool] = []

    def rectify(top: float, always_inplace: bool = False) -> Callable[..., Tensor]:
        def relu(values: Tensor, inplace: bool = False) -> Tensor:
            met.append(True)
            return rectified(values, rule, top, inplace or always_inplace)

        return relu

    def hardtanh(values: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
        if min_val != 0:
            return F.hardtanh(values, min_val, max_val, inplace)
        return rectify(max_val)(values, inplace)

    replacements: dict[Any, Callable[..., Tensor]] = dict.fromkeys(intercept.HARDTANH, hardtanh)
    for operations, make in (
        (intercept.RELU, rectify(torch.inf)),
        (intercept.RELU_INPLACE, rectify(torch.inf, always_inplace=True)),
        (intercept.RELU6, rectify(6.0)),
    ):
        replacements |= dict.fromkeys(operations, make)
    way = engine.settled(model, batch.images, "gradient")

    def run(normalised: Tensor) -> Any:
        with intercept.Intercept(replacements):  # and not around the engine, whose operations would all be asked about
            return way.run(normalised)

    slopes, _ = engine.gradient(model, batch.images, batch.targets, readout, replace(way, run=run))
    if not met:
        raise NotApplicable(
            "guided_backprop, deconvnet and guided_grad_cam change how ReLUs are passed, and model "
            f"{model.name!r} computes none that can be seen (other activations, or compiled code): take saliency, "
            "input_x_gradient or grad_cam"
        )
    return slopes


@method
@dataclass(frozen=True)
class GuidedBackprop:
    """The gradient with every negative signal stopped at every rectifier.

    Paper: Springenberg et al. 2015, "Striving for Simplicity: The All Convolutional Net"
    """

    pooling: Pooling = "sum"
    readout: Readout = "logit"

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        return rectified_gradient(model, batch, "guided", self.readout)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)

    def cost(self) -> Cost:
        return Cost(1, 1)


@method("deconvnet")
@dataclass(frozen=True)
class DeconvNet:
    """The gradient with rectifiers applied to the signal on its way back instead of on its way in.

    Paper: Zeiler & Fergus 2014, "Visualizing and Understanding Convolutional Networks"
    """

    pooling: Pooling = "sum"
    readout: Readout = "logit"

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        return rectified_gradient(model, batch, "deconvnet", self.readout)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)

    def cost(self) -> Cost:
        return Cost(1, 1)
