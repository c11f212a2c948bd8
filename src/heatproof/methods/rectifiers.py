"""Backward passes that treat rectifiers differently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.errors import NotApplicable
from heatproof.methods.intercept import Intercept, Spelling, spellings
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Maps, Model, Readout

Rule = Literal["guided", "deconvnet"]


def _of_clamp(min: Any = None, max: Any = None) -> float | None:
    """One to [0, 1] may well be meant for pictures, and is no rectifier."""
    if isinstance(min, Tensor) or isinstance(max, Tensor) or min != 0 or max not in (None, 6):
        return None
    return torch.inf if max is None else float(max)


def _of_threshold(threshold: float, value: float, inplace: bool = False) -> float | None:
    return torch.inf if threshold == value == 0 else None


def _of_hardtanh(min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> float | None:
    return max_val if min_val == 0 else None


# By the name of an operation: up to where it lets numbers pass as told, if it is a rectifier.
TOPS: dict[str, Callable[..., float | None]] = {
    "relu": lambda *_, **__: torch.inf,
    "relu6": lambda *_, **__: 6.0,
    "hardtanh": _of_hardtanh,  # what the module nn.ReLU6 calls
    "clamp": _of_clamp,
    "clip": _of_clamp,
    "clamp_min": _of_clamp,
    "threshold": _of_threshold,
}


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
    """Input gradients with every ReLU and ReLU6 replaced, module, function or in place, also where it is spelt as
    cutting off what is below zero: (B, C, H, W).
    """
    met: list[bool] = []

    def replaced(way: Spelling, top_of: Callable[..., Any]) -> Callable[..., Tensor]:
        def rectifier(values: Tensor, *told: Any, **named: Any) -> Tensor:
            top = top_of(*told, **named)
            if top is None:
                return way.spelt(values, *told, **named)  # type: ignore[no-any-return]
            met.append(True)
            inplace = way.inplace or named.get("inplace", False) or (bool(told) and told[-1] is True)
            return rectified(values, rule, top, inplace)

        return rectifier

    replacements = {way.spelt: replaced(way, top_of) for name, top_of in TOPS.items() for way in spellings(name)}
    way = engine.settled(model, batch.images, "gradient")

    def run(normalised: Tensor) -> Any:
        with Intercept(replacements):  # and not around the engine, whose operations would all be asked about
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
