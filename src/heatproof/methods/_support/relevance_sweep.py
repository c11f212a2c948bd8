"""Chefer's relevance sweep: gradients replaced by relevance, from the answer down to the attention of every layer.

Linear layers share relevance by their positive contributions (α = 1, β = 0), products and sums by their factors'
shares; activations, norms, softmax and constant factors pass it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.methods._support.attention_layers import PRODUCTS, SOFTMAXES, multi_head, written_out
from heatproof.methods._support.canonization import Passed, ProportionalMean
from heatproof.methods._support.gradient_rules import branch
from heatproof.methods._support.op_override import ACTIVATIONS, Intercept, spellings

TINY = 1e-9
_NORMS: tuple[Any, ...] = (F.layer_norm, torch.layer_norm, F.rms_norm, F.group_norm, F.normalize)
_ADD: tuple[Any, ...] = (torch.add, Tensor.add)
_FACTOR: tuple[Any, ...] = (torch.mul, torch.multiply, Tensor.mul, Tensor.multiply)
_QUOTIENT: tuple[Any, ...] = (torch.div, torch.divide, torch.true_divide, Tensor.div, Tensor.divide)
_MEAN: tuple[Any, ...] = (torch.mean, Tensor.mean)


def quotient(above: Tensor, below: Tensor) -> Tensor:
    """above / below, 0 where below is 0, and nearly so where it is tiny."""
    return torch.where(below == 0, 0.0, above / torch.where(below + TINY == 0, TINY, below + TINY))


class Positive(torch.autograd.Function):
    """A linear layer that shares relevance by positive contributions: of positive and of negative inputs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, bias: Any, plain: Callable[..., Tensor]) -> Tensor:
        ctx.plain = plain
        ctx.save_for_backward(values, weight)
        return plain(values, weight, bias)

    @staticmethod
    def backward(ctx: Any, *relevances: Tensor) -> tuple[Tensor, None, None, None]:
        values, weight = ctx.saved_tensors
        with torch.enable_grad():
            sides = [side.detach().requires_grad_() for side in (values.clamp(min=0), values.clamp(max=0))]
            sums = [
                ctx.plain(side, part, None)
                for side, part in zip(sides, (weight.clamp(min=0), weight.clamp(max=0)), strict=True)
            ]
            share = quotient(relevances[0], (sums[0] + sums[1]).detach())
            back = torch.autograd.grad(sums, sides, [share, share])
        return sides[0].detach() * back[0] + sides[1].detach() * back[1], None, None, None


class Product(torch.autograd.Function):
    """A product of two branches: each factor takes half of the relevance, by its entries' shares."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, plain: Callable[..., Tensor]) -> Tensor:
        outputs = plain(first, second)
        ctx.plain = plain
        ctx.save_for_backward(first, second, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *relevances: Tensor) -> tuple[Tensor, Tensor, None]:
        first, second, outputs = ctx.saved_tensors
        with torch.enable_grad():
            pair = [side.detach().requires_grad_() for side in (first, second)]
            back = torch.autograd.grad(ctx.plain(*pair), pair, quotient(relevances[0], outputs))
        return first * back[0] / 2, second * back[1] / 2, None


class Sum(torch.autograd.Function):
    """A sum of two branches: relevance by the entries' shares, then rescaled so that each branch's total is its share
    of both totals' magnitudes, picture by picture.
    """

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
        ctx.save_for_backward(first, second)
        return first + second

    @staticmethod
    def backward(ctx: Any, *relevances: Tensor) -> tuple[Tensor, Tensor]:
        first, second = ctx.saved_tensors
        share = quotient(relevances[0], first + second)
        parts = first * share, second * share
        over = tuple(range(1, first.ndim))
        totals = [part.sum(over, keepdim=True) for part in parts]
        size = totals[0].abs() + totals[1].abs()
        whole = relevances[0].sum(over, keepdim=True)
        scaled = [
            part * quotient(quotient(total.abs(), size) * whole, total)
            for part, total in zip(parts, totals, strict=True)
        ]
        return scaled[0], scaled[1]


def sweep() -> Mapping[Any, Callable[..., Any]]:
    """Replacements under which the gradient of the answer is relevance; parameters must be frozen."""
    found: dict[Any, Callable[..., Any]] = {}

    def again(plain: Callable[..., Any]) -> Callable[..., Any]:
        def written(*rest: Any, **named: Any) -> Any:
            with Intercept(found):
                return plain(*rest, **named)

        return written

    found |= {F.scaled_dot_product_attention: again(written_out), F.multi_head_attention_forward: again(multi_head)}
    elementwise = [way.spelt for name in ACTIVATIONS for way in spellings(name)]
    found |= {plain: _passed(plain) for plain in (*SOFTMAXES, *_NORMS, *elementwise)}
    found |= {plain: _product(plain, scales=False) for plain in PRODUCTS}
    found |= {plain: _product(plain, scales=True) for plain in (*_FACTOR, *_QUOTIENT)}
    found |= {plain: _added(plain) for plain in _ADD}
    found |= {plain: _averaged(plain) for plain in _MEAN}
    found |= {layer: _positive(layer) for layer in (F.linear, F.conv2d)}
    return found


def _passed(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def operation(values: Tensor, *rest: Any, **named: Any) -> Tensor:
        if not branch(values):
            return plain(values, *rest, **named)
        return Passed.apply(values, lambda inner: plain(inner, *rest, **named))  # type: ignore[no-any-return,no-untyped-call]

    return operation


def _product(plain: Callable[..., Tensor], scales: bool) -> Callable[..., Tensor]:
    def operation(first: Any, *rest: Any, **named: Any) -> Tensor:
        second = rest[0] if rest else named.get("other")
        if branch(first) and branch(second):
            return Product.apply(first, second, plain)  # type: ignore[no-any-return,no-untyped-call]
        if scales and branch(first):
            return Passed.apply(first, lambda inner: plain(inner, *rest, **named))  # type: ignore[no-any-return,no-untyped-call]
        if scales and branch(second):
            return Passed.apply(second, lambda inner: plain(first, inner))  # type: ignore[no-any-return,no-untyped-call]
        if branch(first) and isinstance(second, Tensor) and second.ndim == 2:  # a weight without a layer
            return Positive.apply(first, second, None, lambda inner, by, _: plain(inner, by))  # type: ignore[no-any-return,no-untyped-call]
        return plain(first, *rest, **named)

    return operation


def _added(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def operation(first: Any, *rest: Any, **named: Any) -> Tensor:
        second: Any = rest[0] if rest else named.get("other")
        if named.keys() - {"other"} or not (branch(first) and branch(second)) or first.shape != second.shape:
            return plain(first, *rest, **named)
        return Sum.apply(first, second)  # type: ignore[no-any-return,no-untyped-call]

    return operation


def _averaged(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def operation(values: Tensor, *rest: Any, **named: Any) -> Tensor:
        if not branch(values):
            return plain(values, *rest, **named)
        return ProportionalMean.apply(values, lambda inner: plain(inner, *rest, **named))  # type: ignore[no-any-return,no-untyped-call]

    return operation


def _positive(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def layer(values: Tensor, weight: Tensor, bias: Tensor | None = None, *rest: Any, **named: Any) -> Tensor:
        if not branch(values):
            return plain(values, weight, bias, *rest, **named)
        return Positive.apply(  # type: ignore[no-any-return,no-untyped-call]
            values, weight, bias, lambda inner, by, offset: plain(inner, by, offset, *rest, **named)
        )

    return layer
