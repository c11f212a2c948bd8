"""DeepLIFT: differences from a baseline, handed back through the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.errors import NotApplicable
from heatproof.methods.baselines import Baseline, is_random, start
from heatproof.methods.intercept import Intercept
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.methods.taps import differentiable
from heatproof.methods.transformers import attends
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout, read

NEAR = 1e-6  # below this difference a slope is the gradient: the quotient would be rounding noise

_ACTIVATIONS: tuple[Any, ...] = (
    *(F.relu, torch.relu, Tensor.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.celu, F.gelu, F.silu, F.mish),
    *(F.hardswish, F.hardsigmoid, F.hardtanh, F.softplus, F.sigmoid, torch.sigmoid, Tensor.sigmoid),
    *(F.tanh, torch.tanh, Tensor.tanh),
)
_IN_PLACE: tuple[Any, ...] = (F.relu_, torch.relu_, Tensor.relu_)


class Rescaled(torch.autograd.Function):
    """An activation of [pictures; baselines] whose slope is Δoutput / Δinput (the Rescale rule)."""

    @staticmethod
    def forward(ctx: Any, pairs: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        outputs = activation(pairs)
        ctx.activation = activation
        ctx.save_for_backward(pairs, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        pairs, outputs = ctx.saved_tensors
        above, below = slopes[0].chunk(2)
        inputs, references = pairs.chunk(2)
        with torch.enable_grad():
            leaf = inputs.detach().requires_grad_()
            (tangent,) = torch.autograd.grad(ctx.activation(leaf).sum(), leaf)
        way = inputs - references
        rise = outputs[: len(inputs)] - outputs[len(inputs) :]
        near = way.abs() < NEAR
        secant = torch.where(near, tangent, rise / torch.where(near, 1.0, way))
        return torch.cat([above * secant, below * secant]), None


class RescaledMaxPool(torch.autograd.Function):
    """Max-pooling of [pictures; baselines]: a rise goes to the one's maximum, a fall to the other's."""

    @staticmethod
    def forward(ctx: Any, pairs: Tensor, pooled: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        outputs, places = pooled(pairs)
        ctx.save_for_backward(pairs, outputs, places)
        return outputs

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        pairs, outputs, places = ctx.saved_tensors
        above, _ = slopes[0].chunk(2)
        way = torch.sub(*pairs.chunk(2))
        tops, references = outputs.chunk(2)
        higher = torch.maximum(tops, references)
        own, theirs = (part.flatten(2) for part in places.chunk(2))
        shares = torch.zeros_like(way).flatten(2)
        shares.scatter_add_(2, own, (above * (higher - references)).flatten(2))
        shares.scatter_add_(2, theirs, (above * (tops - higher)).flatten(2))
        shares = shares.view_as(way)
        near = way.abs() < NEAR
        slope = torch.where(near, 0.0, shares / torch.where(near, 1.0, way))
        return torch.cat([slope, torch.zeros_like(slope)]), None


def rescaling() -> Mapping[Any, Callable[..., Any]]:
    """Replacements for every nonlinearity the rule covers, be it a module, a function or in place."""

    def rescaled(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def activation(pairs: Tensor, *rest: Any, **named: Any) -> Tensor:
            inplace = named.pop("inplace", False)
            if rest and isinstance(rest[-1], bool):  # it comes last everywhere
                *rest, inplace = rest  # type: ignore[assignment]
            return _rescale(pairs, lambda inner: plain(inner, *rest, **named), inplace)

        return activation

    def written_back(pairs: Tensor) -> Tensor:
        return _rescale(pairs, torch.relu, inplace=True)

    def max_pool(pairs: Tensor, *rest: Any, **named: Any) -> Any:
        if named.pop("return_indices", False):
            raise NotApplicable("deep_lift cannot pass a max-pooling whose indices are used")
        pooled = lambda inner: F.max_pool2d(inner, *rest, **named, return_indices=True)  # noqa: E731
        return RescaledMaxPool.apply(pairs, pooled)  # type: ignore[no-untyped-call]

    return (
        {plain: rescaled(plain) for plain in _ACTIVATIONS}
        | dict.fromkeys(_IN_PLACE, written_back)
        | {F.max_pool2d: max_pool, torch.max_pool2d: max_pool}
    )


def _rescale(pairs: Tensor, activation: Callable[[Tensor], Tensor], inplace: bool) -> Tensor:
    kept = pairs.clone() if inplace else pairs  # the rule needs the input that is about to be overwritten
    result: Tensor = Rescaled.apply(kept, activation)  # type: ignore[no-untyped-call]
    return pairs.copy_(result) if inplace else result


def multipliers(
    model: Model, images: Images, origins: Images, targets: Tensor, readout: Readout
) -> tuple[Tensor, Tensor]:
    """Δanswer handed back as slopes by pixel (B, C, H, W), and Δanswer itself (B,)."""
    size = max(engine.batch_size(model, images, "gradient") // 2, 1)  # a row is two pictures
    slopes, rises = [], []
    for first in range(0, len(images), size):
        count = len(images[first : first + size])
        rows = (first + torch.arange(size, device=images.device)).clamp(max=len(images) - 1)
        with differentiable(model), Intercept(rescaling()):
            pairs = torch.cat([images[rows], origins[rows]]).to(model.device).requires_grad_()
            values = read(model(pairs), targets[rows].repeat(2).to(model.device), readout)
        with differentiable(model):
            (slope,) = torch.autograd.grad(values[:size].sum(), pairs)
        slopes.append(slope[:count].to(images.device))
        rises.append((values[:count] - values[size : size + count]).detach().to(images.device))
    return torch.cat(slopes), torch.cat(rises)


@method
@dataclass(frozen=True)
class DeepLift:
    """The answer's difference from a baseline, shared out by what changed on the way (the Rescale rule).

    Adds up to that difference, which is checked: a network with operations the rule does not cover
    (attention, products of branches) is refused rather than explained wrongly. `baseline` as in
    integrated_gradients.

    Paper: Shrikumar et al. 2017, "Learning Important Features Through Propagating Activation Differences"
    """

    baseline: Baseline = "black"
    draws: int = 1
    pooling: Pooling = "sum"

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling)

    @property
    def _draws(self) -> int:
        return self.draws if is_random(self.baseline) else 1

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        if attends(model, batch.images):
            raise NotApplicable(
                "deep_lift's rule does not cover the attention in this network: take integrated_gradients"
            )
        total = torch.zeros_like(batch.images)
        for draw in range(self._draws):
            origin = start(self.baseline, model, batch, draw)
            slopes, rises = multipliers(model, batch.images, origin, batch.targets, "logit")
            shares = slopes * (batch.images - origin)
            _check_complete(shares, rises, model)
            total += shares
        return total / self._draws

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)

    def cost(self) -> Cost:
        return Cost(2 * self._draws, 2 * self._draws)


def _check_complete(shares: Tensor, rises: Tensor, model: Model) -> None:
    gap = (shares.flatten(1).sum(1) - rises).abs()
    scale = shares.flatten(1).abs().sum(1) + rises.abs()
    if bool((gap > 1e-2 * scale + 1e-4).any()):
        worst = int(gap.argmax())
        raise NotApplicable(
            f"deep_lift's rule does not cover everything model {model.name!r} computes: its shares add up to "
            f"{float(shares[worst].sum()):.4g} instead of {float(rises[worst]):.4g}; "
            "take integrated_gradients"
        )
