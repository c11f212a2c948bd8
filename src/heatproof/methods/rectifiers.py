"""Backward passes that treat rectifiers differently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from heatproof.errors import NotApplicable
from heatproof.methods import intercept
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Maps, Model, Readout

Rule = Literal["guided", "deconvnet"]


class Rectified(torch.autograd.Function):
    """min(max(x, 0), top), letting only positive gradients back; guided: only where x passed."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, rule: Rule, top: float, inplace: bool) -> Tensor:
        ctx.rule = rule
        ctx.save_for_backward((values > 0) & (values < top))
        if inplace:
            ctx.mark_dirty(values)
            return values.clamp_(0, top)
        return values.clamp(0, top)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None, None]:
        (open_,) = ctx.saved_tensors
        positive = slopes[0].clamp(min=0)
        return positive * open_ if ctx.rule == "guided" else positive, None, None, None


def rectified_gradient(model: Model, batch: Batch, rule: Rule, readout: Readout) -> Tensor:
    """Input gradients with every ReLU and ReLU6 replaced, module, function or in place: (B, C, H, W)."""
    met: list[bool] = []

    def rectify(top: float, always_inplace: bool = False) -> Callable[..., Tensor]:
        def relu(values: Tensor, inplace: bool = False) -> Tensor:
            met.append(True)
            replaced: Tensor = Rectified.apply(values, rule, top, inplace or always_inplace)  # type: ignore[no-untyped-call]
            return replaced

        return relu

    def hardtanh(values: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
        if min_val != 0:
            return torch.nn.functional.hardtanh(values, min_val, max_val, inplace)
        return rectify(max_val)(values, inplace)

    replacements: dict[Any, Callable[..., Tensor]] = dict.fromkeys(intercept.HARDTANH, hardtanh)
    for operations, make in (
        (intercept.RELU, rectify(torch.inf)),
        (intercept.RELU_INPLACE, rectify(torch.inf, always_inplace=True)),
        (intercept.RELU6, rectify(6.0)),
    ):
        replacements |= dict.fromkeys(operations, make)
    engine.batch_size(model, batch.images, "gradient")  # settled before anything is replaced
    with intercept.Intercept(replacements):
        slopes, _ = engine.gradient(model, batch.images, batch.targets, readout)
    if not met:
        raise NotApplicable(
            f"guided_backprop and deconvnet change how ReLUs are passed, and model {model.name!r} computes "
            "none that can be seen (other activations, or compiled code): take saliency or input_x_gradient"
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
