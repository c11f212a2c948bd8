"""DeepLIFT: differences from a baseline, propagated back through the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof import engine
from heatproof.engine.backends.eager import answered
from heatproof.engine.checks import check_finite
from heatproof.errors import NotApplicable
from heatproof.methods._support.baselines import (
    Baseline,
    adds_up,
    answer_rise,
    is_one_colour,
    is_random,
    revision_of,
    starts,
)
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.op_override import ACTIVATIONS, Intercept, Spelling, spellings
from heatproof.methods.attention_rollout import attends
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout

NEAR = 1e-6  # below this difference a slope is the gradient: the quotient would be rounding noise
TIE = 3e-5  # share of a channel's largest output: maxima that win by less win by rounding


class Met(NamedTuple):
    """An operation's inputs and outputs for the baselines (or for the one baseline of all pictures)."""

    inputs: Tensor
    outputs: Tensor
    places: Tensor | None = None  # of the maxima, if it was a max-pooling


class Rescaled(torch.autograd.Function):
    """An activation whose slope is Δoutput / Δinput (the Rescale rule)."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, activation: Callable[[Tensor], Tensor], met: Met) -> Tensor:
        outputs = activation(inputs)
        ctx.activation, ctx.met = activation, met
        ctx.save_for_backward(inputs, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        inputs, outputs = ctx.saved_tensors
        way = inputs - ctx.met.inputs
        secant = (outputs - ctx.met.outputs).div_(way)
        near = way.abs_() < NEAR
        if bool(near.any()):
            with torch.enable_grad():  # for few numbers: an activation works on each input alone
                leaf = inputs[near].requires_grad_()
                (tangent,) = torch.autograd.grad(ctx.activation(leaf).sum(), leaf)
            secant[near] = tangent
        return slopes[0] * secant, None, None


class RescaledMaxPool(torch.autograd.Function):
    """Max-pooling: a rise goes to the picture's maximum, a fall to the baseline's."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, pooled: Callable[[Tensor], tuple[Tensor, Tensor]], met: Met) -> Tensor:
        outputs, places = pooled(inputs)
        ctx.met = met
        ctx.save_for_backward(inputs, outputs, places)
        return outputs

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        inputs, tops, own = ctx.saved_tensors
        way = inputs - ctx.met.inputs
        references = ctx.met.outputs
        higher = torch.maximum(tops, references)
        shares = torch.zeros_like(way, memory_format=torch.contiguous_format).flatten(2)
        shares.scatter_add_(2, own.flatten(2), (slopes[0] * (higher - references)).flatten(2))
        shares.scatter_add_(2, ctx.met.places.expand_as(own).flatten(2), (slopes[0] * (tops - higher)).flatten(2))
        near = way.abs() < NEAR
        return shares.view_as(way).div(way).masked_fill_(near, 0.0), None, None


def pooled_maxima(inputs: Tensor, *rest: Any, **named: Any) -> tuple[Tensor, Tensor]:
    """Maxima and their places, as `max_pool2d` with indices, but ties are always resolved to the same place.

    On a plain background all activations of a window are equal but for rounding, which differs between processors and
    memory layouts; and a maximum's place decides who gets its share. The first place wins; in a window of more than
    some thirty places the offsets that order them are so small that rounding may still decide.
    """
    sides = (rest[0] if rest else named["kernel_size"], rest[3] if len(rest) > 3 else named.get("dilation", 1))
    (tall, wide), (apart, aside) = ((side, side) if isinstance(side, int) else (*side, *side)[:2] for side in sides)
    down, across = (tall - 1) * apart + 1, (wide - 1) * aside + 1
    row, column = (torch.arange(side, device=inputs.device) for side in inputs.shape[-2:])
    turn = (row % down)[:, None] * across + column % across  # no two places of a window have the same
    outputs = F.max_pool2d(inputs, *rest, **named)
    largest = outputs.abs().amax((-2, -1), keepdim=True)
    later = TIE / (down * across) * largest * turn
    return outputs, F.max_pool2d(inputs - later, *rest, **named, return_indices=True)[1]


def covered(
    activate: Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor],
    pool: Callable[[Tensor, Callable[[Tensor], tuple[Tensor, Tensor]]], Tensor],
) -> Mapping[Any, Callable[..., Any]]:
    """Replacements for every nonlinearity that the rule covers: modules, functions and in-place forms."""

    def kept(inputs: Tensor, activation: Callable[[Tensor], Tensor], inplace: bool) -> Tensor:
        if not inplace:
            return activate(inputs, activation)
        return inputs.copy_(activate(inputs.clone(), activation))  # the rule needs what is about to be overwritten

    def replaced(way: Spelling) -> Callable[..., Tensor]:
        def activation(inputs: Tensor, *rest: Any, **named: Any) -> Tensor:
            if any(
                isinstance(option, Tensor) for option in (*rest, *named.values())
            ):  # not element-wise in its input alone
                return way.spelt(inputs, *rest, **named)  # type: ignore[no-any-return]
            inplace = named.pop("inplace", False) or way.inplace
            if rest and isinstance(rest[-1], bool):  # it comes last everywhere
                *rest, inplace = rest  # type: ignore[assignment]
            return kept(inputs, lambda inner: way.plain(inner, *rest, **named), inplace)

        return activation

    def max_pool(inputs: Tensor, *rest: Any, **named: Any) -> Tensor:
        if named.pop("return_indices", False):
            raise NotApplicable("deep_lift cannot pass a max-pooling whose indices are used")
        return pool(inputs, lambda inner: pooled_maxima(inner, *rest, **named))

    return {way.spelt: replaced(way) for name in ACTIVATIONS for way in spellings(name)} | {
        F.max_pool2d: max_pool,
        torch.max_pool2d: max_pool,
    }


def remembering(met: list[Met]) -> Mapping[Any, Callable[..., Any]]:
    """The operations unchanged, which record in order what each makes of the baselines."""

    def activate(inputs: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        met.append(Met(inputs, activation(inputs)))
        return met[-1].outputs

    def pool(inputs: Tensor, pooled: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        met.append(Met(inputs, *pooled(inputs)))
        return met[-1].outputs

    return covered(activate, pool)


def rescaling(met: Sequence[Met]) -> Mapping[Any, Callable[..., Any]]:
    """The operations with the rule's slopes, in the order in which the baselines passed them."""
    waiting = iter(met)

    def following() -> Met:
        found = next(waiting, None)
        if found is None:
            raise NotApplicable(
                "deep_lift needs a network that computes the same operations for every picture, and this one did "
                "more for the picture than for its baseline: take integrated_gradients"
            )
        return found

    def activate(inputs: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        return Rescaled.apply(inputs, activation, following())  # type: ignore[no-any-return,no-untyped-call]

    def pool(inputs: Tensor, pooled: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        return RescaledMaxPool.apply(inputs, pooled, following())  # type: ignore[no-any-return,no-untyped-call]

    return covered(activate, pool)


def multipliers(
    model: Model, images: Images, origins: Images, targets: Tensor, readout: Readout
) -> tuple[Tensor, Tensor, Tensor]:
    """Δanswer propagated back as slopes per pixel (B, C, H, W), Δanswer itself (B,), and the larger of the two answers
    it is the difference of (B,); one origin may serve all images.
    """
    way = engine.settled(model, images, "gradient")  # before anything is replaced
    parts: list[tuple[Tensor, ...]] = []
    met: list[Met] = []
    below = torch.empty(0)
    own = (origins,) if len(origins) > 1 else ()
    for count, (inputs, aims, *begin) in engine.micro_batches(way, images, targets, *own):
        if not met or own:
            met.clear()
            with torch.inference_mode(False), torch.no_grad(), Intercept(remembering(met)):
                below = answered(model, (begin[0] if own else origins).to(model.device), way.run)
        with torch.inference_mode(False), torch.enable_grad():
            inputs = inputs.to(model.device).requires_grad_()
            aims = aims.to(model.device)
            with Intercept(rescaling(met)):
                values = model.read(answered(model, inputs, way.run), aims, readout)
            (slope,) = torch.autograd.grad(values.sum(), inputs)
        before = model.read(below.expand(len(aims), -1), aims, readout)
        found = (slope, values - before, torch.maximum(values.abs(), before.abs()))
        parts.append(tuple(part.detach()[:count].to(images.device) for part in found))
    slopes, rises, answers = (torch.cat(column) for column in zip(*parts, strict=True))
    check_finite(model, rises, images)
    return slopes, rises, answers


@method
@dataclass(frozen=True)
class DeepLift(ChannelPooled):
    """The answer's difference from a baseline, shared out by each activation's difference (the Rescale rule).

    Adds up to that difference, which is checked: a network with operations the rule does not cover
    (attention, products of branches) is refused rather than explained wrongly. `baseline` as in
    integrated_gradients.

    Paper: Shrikumar et al. 2017, "Learning Important Features Through Propagating Activation Differences"
    """

    baseline: Baseline = "black"
    draws: int = 1
    pooling: Pooling = "sum"

    revision = revision_of("baseline")

    def __post_init__(self) -> None:
        check_count("draws", self.draws)

    @property
    def random(self) -> bool:
        return is_random(self.baseline)

    @property
    def _draws(self) -> int:
        return self.draws if self.random else 1

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        if attends(model, batch.images):
            raise NotApplicable(
                "deep_lift's rule does not cover the attention in this network: take attn_lrp, libra_grad or "
                "integrated_gradients"
            )
        total = torch.zeros_like(batch.images)
        for origin in starts(self.baseline, model, batch, self._draws):
            shared = origin[:1] if is_one_colour(self.baseline) else origin
            slopes, rises, answers = multipliers(model, batch.images, shared, batch.targets, "logit")
            shares = slopes * (batch.images - origin)
            _check_complete(shares, rises, answers, model)
            total += shares
        return total / self._draws

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """The sum that maps add up to: the answer's rise over the baseline."""
        adds_up("deep_lift", self.pooling)
        return answer_rise(model, batch, self.baseline, self._draws, "logit")

    def cost(self) -> Cost:
        return Cost(2 * self._draws, self._draws)  # at most: pictures may share a baseline


def _check_complete(shares: Tensor, rises: Tensor, answers: Tensor, model: Model) -> None:
    gap = (shares.flatten(1).sum(1) - rises).abs()
    scale = shares.flatten(1).abs().sum(1) + rises.abs()
    if bool((gap > 1e-2 * scale + 1e-5 * answers).any()):  # a difference is as exact as what it is the difference of
        worst = int(gap.argmax())
        raise NotApplicable(
            f"deep_lift's rule does not cover everything model {model.name!r} computes: its shares add up to "
            f"{float(shares[worst].sum()):.4g} instead of {float(rises[worst]):.4g}; "
            "take integrated_gradients"
        )
