"""Rules that change what flows back and not the answer: relevance propagation as input times gradient.

With norms held constant, activations as x times a constant slope and attention held constant or halved, the sum of
input times gradient is conserved through every layer; what is lost goes to biases and positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heatproof.methods._support.attention_layers import PRODUCTS, SOFTMAXES, multi_head, written_out
from heatproof.methods._support.op_override import Intercept, spellings

Replacements = Mapping[Any, Callable[..., Any]]

SLOPED = ("gelu", "silu", "mish", "hardswish", "elu", "selu", "celu", "tanh", "softsign")  # f(x) = x · slope
GATES = ("sigmoid", "hardsigmoid", "erf")  # a factor of x, not a value of its own
NEAR = 1e-6  # below this magnitude the slope is the derivative: the quotient would be rounding noise
_MUL: tuple[Any, ...] = (torch.mul, torch.multiply, Tensor.mul, Tensor.multiply)
_MUL_INPLACE: tuple[Any, ...] = (Tensor.mul_, Tensor.multiply_)
_DIV: tuple[Any, ...] = (torch.div, torch.divide, torch.true_divide, Tensor.div, Tensor.divide, Tensor.true_divide)
_ROOTS: tuple[Any, ...] = (torch.rsqrt, Tensor.rsqrt, torch.sqrt, Tensor.sqrt)
_LENGTHS: tuple[Any, ...] = (torch.norm, Tensor.norm, torch.linalg.norm, torch.linalg.vector_norm)


@dataclass(frozen=True)
class Rules:
    """What is held constant, and what is shared out."""

    attention: bool = True  # attention is constant; otherwise relevance also flows to queries and keys, halved
    lengths: bool = True  # the norm in a division by it is constant
    gamma_linear: float = 0.0  # how much more positive parts of linear layers count
    gamma_conv: float = 0.0


def branch(value: Any) -> bool:
    """Whether a value depends on the picture; parameters are frozen meanwhile."""
    return isinstance(value, Tensor) and value.requires_grad and not isinstance(value, nn.Parameter)


def halved(result: Tensor) -> Tensor:
    """The same value, and half the gradient: each factor of a product takes half."""
    return 0.5 * result + (0.5 * result).detach()


class Sloped(torch.autograd.Function):
    """An activation as its input times a constant slope f(x) / x, the derivative at zero."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        outputs = activation(values)
        ctx.activation = activation
        ctx.save_for_backward(values, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        values, outputs = ctx.saved_tensors
        near = values.abs() < NEAR
        quotient = outputs / values.masked_fill(near, 1.0)
        if bool(near.any()):
            with torch.enable_grad():
                leaf = values[near].detach().requires_grad_()
                (quotient[near],) = torch.autograd.grad(ctx.activation(leaf).sum(), leaf)
        return slopes[0] * quotient, None


class Gamma(torch.autograd.Function):
    """A linear layer whose positive contributions count 1 + γ times, for outputs of either sign (generalised γ)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, bias: Any, gamma: float, run: Callable[..., Tensor]) -> Any:
        outputs = run(values, weight, bias)
        ctx.gamma, ctx.run = gamma, run
        ctx.save_for_backward(values, weight, bias, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None, None, None]:
        values, weight, bias, outputs = ctx.saved_tensors
        gamma, run = ctx.gamma, ctx.run
        more, less = weight + gamma * weight.clamp(min=0), weight + gamma * weight.clamp(max=0)
        up, down = (
            None if bias is None else bias + gamma * side for side in (_part(bias, min=0.0), _part(bias, max=0.0))
        )
        positive, negative = values.clamp(min=0), values.clamp(max=0)
        relevance = slopes[0] * outputs
        above = run(positive, more, up) + run(negative, less, None)
        below = run(positive, less, down) + run(negative, more, None)
        to_above = torch.where(outputs > 0, relevance / above, 0.0)
        to_below = torch.where(outputs < 0, relevance / below, 0.0)
        with torch.enable_grad():
            leaf = torch.zeros_like(values).requires_grad_()
            both = run(leaf, more, None), run(leaf, less, None)
            (at_positive,) = torch.autograd.grad(both, leaf, (to_above, to_below), retain_graph=True)
            (at_negative,) = torch.autograd.grad(both, leaf, (to_below, to_above))
        return torch.where(values >= 0, at_positive, at_negative), None, None, None, None


def _part(bias: Any, **limits: float) -> Any:
    return None if bias is None else bias.clamp(**limits)


def replacements(rules: Rules) -> Replacements:
    """The operations with these rules; enter `Intercept` or `forward_only` with them, parameters frozen."""
    found: dict[Any, Callable[..., Any]] = {}

    def again(plain: Callable[..., Any]) -> Callable[..., Any]:
        def written(*rest: Any, **named: Any) -> Any:
            with Intercept(found):
                return plain(*rest, **named)

        return written

    found |= {F.scaled_dot_product_attention: again(written_out), F.multi_head_attention_forward: again(multi_head)}
    found |= {plain: _constant(plain) for plain in (*_ROOTS, *(_LENGTHS if rules.lengths else ()))}
    found |= {way.spelt: _constant(way.spelt) for name in GATES for way in spellings(name)}
    found |= {way.spelt: _sloped(way.plain, way.inplace) for name in SLOPED for way in spellings(name)}
    found |= {plain: _shared(plain) for plain in (*_MUL, *PRODUCTS, torch.einsum)}
    found |= {plain: _shared_inplace(plain) for plain in _MUL_INPLACE}
    found |= {plain: _divided(plain) for plain in _DIV}
    found |= {F.layer_norm: _layer_norm, torch.layer_norm: _layer_norm, F.group_norm: _group_norm}
    found |= {F.rms_norm: _rms_norm, F.instance_norm: _instance_norm}
    if rules.lengths:
        found[F.normalize] = _normalize
    if rules.attention:
        found |= {plain: _attention(plain) for plain in SOFTMAXES}
    if rules.gamma_linear:
        found[F.linear] = _gamma(F.linear, rules.gamma_linear)
    if rules.gamma_conv:
        found[F.conv2d] = _gamma(F.conv2d, rules.gamma_conv)
    return found


def _constant(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *rest, **named: plain(*rest, **named).detach()


def _attention(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def softmax(*rest: Any, **named: Any) -> Tensor:
        result = plain(*rest, **named)
        return result.detach() if result.ndim >= 3 else result

    return softmax


def _sloped(plain: Callable[..., Tensor], spelt_inplace: bool) -> Callable[..., Tensor]:
    def activation(values: Tensor, *rest: Any, **named: Any) -> Tensor:
        inplace = named.pop("inplace", False) or spelt_inplace
        if rest and isinstance(rest[-1], bool):  # it comes last everywhere
            *rest, last = rest  # type: ignore[assignment]
            inplace = inplace or last
        if not branch(values):
            result = plain(values, *rest, **named)
        else:
            result = Sloped.apply(  # type: ignore[no-untyped-call]
                values.clone() if inplace else values, lambda inner: plain(inner, *rest, **named)
            )
        return values.copy_(result) if inplace else result  # type: ignore[no-any-return]

    return activation


def _branches(values: Any) -> int:
    flat = [each for value in values for each in (value if isinstance(value, list | tuple) else [value])]
    return sum(branch(value) for value in flat)


def _shared(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def product(*rest: Any, **named: Any) -> Tensor:
        result = plain(*rest, **named)
        return halved(result) if _branches([*rest, *named.values()]) > 1 else result

    return product


def _shared_inplace(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def product(first: Tensor, other: Any) -> Tensor:
        if branch(first) and branch(other):
            return first.copy_(halved(torch.mul(first.clone(), other)))
        return plain(first, other)

    return product


def _divided(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def quotient(first: Any, other: Any, **named: Any) -> Tensor:
        return plain(first, other.detach() if isinstance(other, Tensor) else other, **named)

    return quotient


def _gamma(plain: Callable[..., Tensor], gamma: float) -> Callable[..., Tensor]:
    def layer(values: Tensor, weight: Tensor, bias: Tensor | None = None, *rest: Any, **named: Any) -> Tensor:
        if not branch(values) or branch(weight):
            return plain(values, weight, bias, *rest, **named)

        def run(inner: Tensor, by: Tensor, offset: Tensor | None) -> Tensor:
            return plain(inner, by, offset, *rest, **named)

        result: Tensor = Gamma.apply(values, weight, bias, gamma, run)  # type: ignore[no-untyped-call]
        return result

    return layer


def _scaled(values: Tensor, spread: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    result = values * spread.detach()
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def _layer_norm(
    values: Tensor, shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any
) -> Tensor:
    dims = tuple(range(-len(tuple(shape)), 0))
    centred = values - values.mean(dims, keepdim=True)
    spread = (centred.detach().square().mean(dims, keepdim=True) + eps).rsqrt()
    return _scaled(centred, spread, weight, bias)


def _rms_norm(values: Tensor, shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    dims = tuple(range(-len(tuple(shape)), 0))
    least = torch.finfo(values.dtype).eps if eps is None else eps
    return _scaled(values, (values.detach().square().mean(dims, keepdim=True) + least).rsqrt(), weight, None)


def _group_norm(
    values: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    parts = values.reshape(len(values), groups, -1)
    centred = parts - parts.mean(-1, keepdim=True)
    spread = (centred.detach().square().mean(-1, keepdim=True) + eps).rsqrt()
    shape = (1, -1) + (1,) * (values.ndim - 2)
    shaped = (None if part is None else part.view(shape) for part in (weight, bias))
    return _scaled((centred * spread).view_as(values), values.new_ones(()), *shaped)


def _instance_norm(
    values: Tensor, mean: Any = None, var: Any = None, weight: Any = None, bias: Any = None, *rest: Any, **named: Any
) -> Tensor:
    if mean is not None:  # fixed statistics: linear already
        return F.instance_norm(values, mean, var, weight, bias, *rest, **named)
    return _group_norm(values, values.shape[1], weight, bias, named.get("eps", 1e-5))


def _normalize(values: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Tensor:
    length: Tensor = values.detach().norm(p, dim, keepdim=True)
    return values / length.clamp_min(eps)
