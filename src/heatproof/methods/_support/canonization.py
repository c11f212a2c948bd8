"""Canonization for relevance propagation: batch norms merged, relevance shared out at sums and means."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heatproof.engine.backends.eager import evaluating
from heatproof.errors import NotApplicable
from heatproof.methods._support.op_override import ACTIVATIONS, spellings
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.types import Images, Model

STABILISER = 1e-6  # as in zennit
Merges = list[tuple[list[str], str]]  # (names of layers, name of the batch norm that follows them)

_LINEAR = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ADD: tuple[Any, ...] = (torch.add, Tensor.add)  # and what `+` calls
_ADD_INPLACE: tuple[Any, ...] = (Tensor.add_,)  # and what `+=` calls
_MEAN: tuple[Any, ...] = (torch.mean, Tensor.mean, torch.sum, Tensor.sum)
_POOL: tuple[Any, ...] = (F.adaptive_avg_pool2d, F.avg_pool2d, F.adaptive_avg_pool1d, F.avg_pool1d)
_SCALE: tuple[Any, ...] = (  # and what `*`, `/`, `*=` and `/=` call
    *(torch.mul, torch.multiply, torch.div, torch.divide, torch.true_divide),
    *(Tensor.mul, Tensor.multiply, Tensor.div, Tensor.divide, Tensor.true_divide),
    *(Tensor.mul_, Tensor.multiply_, Tensor.div_, Tensor.divide_, Tensor.true_divide_),
)


def _stable(total: Tensor) -> Tensor:
    return total + torch.where(total < 0, -STABILISER, STABILISER)


class ProportionalSum(torch.autograd.Function):
    """a + b, whose relevance goes to each summand in proportion to its value."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
        ctx.save_for_backward(first, second)
        return first + second

    @staticmethod
    def backward(ctx: Any, *relevances: Tensor) -> tuple[Tensor, Tensor]:
        first, second = ctx.saved_tensors
        share = relevances[0] / _stable(first + second)
        return first * share, second * share


class ProportionalMean(torch.autograd.Function):
    """A mean or sum of values, whose relevance goes to each value in proportion to its share."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, averaged: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.averaged = averaged
        ctx.save_for_backward(values)
        return averaged(values)

    @staticmethod
    def backward(ctx: Any, *relevances: Tensor) -> tuple[Tensor, None]:
        (values,) = ctx.saved_tensors
        with torch.enable_grad():
            leaf = values.detach().requires_grad_()
            total = ctx.averaged(leaf)
            (spread,) = torch.autograd.grad(total, leaf, relevances[0] / _stable(total.detach()))
        return values * spread, None


class Passed(torch.autograd.Function):
    """An activation, whose relevance is passed on as it is: zennit's rule for activations that are layers."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        result = activation(values)
        if result is values:
            ctx.mark_dirty(values)
        return result

    @staticmethod
    def backward(ctx: Any, *relevances: Tensor) -> tuple[Tensor, None]:
        return relevances[0], None


def passed() -> dict[Any, Callable[..., Any]]:
    """Replacements for activations that are functions, not modules, and so out of reach of module hooks."""

    def replaced(plain: Callable[..., Any]) -> Callable[..., Any]:
        def activation(values: Any, *rest: Any, **named: Any) -> Any:
            if not _branch(values):
                return plain(values, *rest, **named)
            return Passed.apply(values, lambda inner: plain(inner, *rest, **named))  # type: ignore[no-untyped-call]

        return activation

    return {way.spelt: replaced(way.spelt) for name in ACTIVATIONS for way in spellings(name)}


def proportional() -> dict[Any, Callable[..., Any]]:
    """Replacements for sums of branches and for means and sums over places, which module hooks do not reach.

    A sum over places divided by their number is a mean too, and a network may normalise its input itself: a factor that
    scales a branch and does not depend on the picture therefore leaves the relevance as it is.
    """

    def added(plain: Callable[..., Any], inplace: bool) -> Callable[..., Any]:
        def add(first: Any, second: Any, *rest: Any, **named: Any) -> Any:
            if rest or named or not (_branch(first) and _branch(second)) or first.shape != second.shape:
                return plain(first, second, *rest, **named)
            kept = first.clone() if inplace else first  # the shares need what is about to be overwritten
            total = ProportionalSum.apply(kept, second)  # type: ignore[no-untyped-call]
            return first.copy_(total) if inplace else total

        return add

    def averaged(plain: Callable[..., Any], spatial: bool) -> Callable[..., Any]:
        def mean(values: Any, *rest: Any, **named: Any) -> Any:
            if _branch(values) and values.ndim > 2 and (spatial or _over_places(values.ndim, *rest, **named)):
                averaging = lambda inner: plain(inner, *rest, **named)  # noqa: E731
                return ProportionalMean.apply(values, averaging)  # type: ignore[no-untyped-call]
            return plain(values, *rest, **named)

        return mean

    def scaled(plain: Callable[..., Any]) -> Callable[..., Any]:
        def scale(first: Any, *rest: Any, **named: Any) -> Any:
            second: Any = rest[0] if rest else named.get("other")
            branch, by = (first, second) if _branch(first) else (second, first)
            if not _branch(branch) or _branch(by) or named.get("rounding_mode") is not None:
                return plain(first, *rest, **named)
            if isinstance(by, Tensor) and torch.broadcast_shapes(by.shape, branch.shape) != branch.shape:
                return plain(first, *rest, **named)

            def product(inner: Tensor) -> Any:
                return plain(inner, *rest, **named) if branch is first else plain(by, inner)

            return Passed.apply(branch, product)  # type: ignore[no-untyped-call]

        return scale

    return (
        {plain: added(plain, False) for plain in _ADD}
        | {plain: added(plain, True) for plain in _ADD_INPLACE}
        | {plain: averaged(plain, False) for plain in _MEAN}
        | {plain: averaged(plain, True) for plain in _POOL}
        | {plain: scaled(plain) for plain in _SCALE}
    )


def _branch(value: Any) -> bool:
    """Whether a value depends on the picture, as parameters do not."""
    return isinstance(value, Tensor) and value.requires_grad and not isinstance(value, nn.Parameter)


def _over_places(ndim: int, *rest: Any, **named: Any) -> bool:
    """Whether a reduction runs over places, that is, not over the batch and not over the channels alone.

    In a tensor of three dimensions either of the last two may be the places: channels first, or tokens first.
    """
    dims = named.get("dim", named.get("axis", rest[0] if rest else None))
    reduced = {d % ndim for d in ([dims] if isinstance(dims, int) else dims or ())}
    return bool(reduced) and 0 not in reduced and (ndim == 3 or reduced != {1})


_known: weakref.WeakKeyDictionary[nn.Module, Merges] = weakref.WeakKeyDictionary()


def merges(model: Model, images: Images) -> Merges:
    """The batch norms that directly follow a linear layer, found in a forward pass.

    Registration order would guess wrongly where blocks start with a norm or use functional activations; here
    a norm counts only if its input is the layer's output itself, unchanged in place, and each of the two runs
    once.
    """
    if model.network in _known:
        return _known[model.network]
    names = {module: name for name, module in model.network.named_modules()}
    outputs: list[tuple[nn.Module, Tensor, int]] = []
    pairs: list[tuple[nn.Module, nn.Module]] = []

    def note(module: nn.Module, _: Any, output: Any) -> None:
        outputs.append((module, output, output._version))

    def look(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        for linear, output, version in outputs:
            if inputs and inputs[0] is output and output._version == version:
                pairs.append((linear, module))

    handles = []
    for module in names:
        if isinstance(module, _LINEAR):
            handles.append(module.register_forward_hook(note))
        elif isinstance(module, _NORM) and module.affine and module.track_running_stats:
            handles.append(module.register_forward_pre_hook(look))
    try:
        with torch.inference_mode(False), torch.no_grad(), evaluating(model.network):
            model(images[:1].to(model.device))
    finally:
        for handle in handles:
            handle.remove()
    runs = [linear for linear, _, _ in outputs]
    norms = [norm for _, norm in pairs]
    found = [
        ([names[linear]], names[norm]) for linear, norm in pairs if runs.count(linear) == 1 and norms.count(norm) == 1
    ]
    _check(model, images, found)
    _known[model.network] = found
    return found


def merging(found: Merges) -> Any:
    """zennit's canonizer for these merges, without the error of the norm's epsilon."""
    import_torchvision("lrp (by way of zennit)")
    from zennit.canonizers import NamedMergeBatchNorm

    class Merging(NamedMergeBatchNorm):  # type: ignore[misc]
        """Also sets the norm's epsilon aside: left in, it shrinks every layer's output."""

        def register(self, linears: Any, batch_norm: Any) -> None:
            super().register(linears, batch_norm)
            self.eps, batch_norm.eps = batch_norm.eps, 0.0

        def remove(self) -> None:
            self.batch_norm.eps = self.eps
            super().remove()

    return Merging(found)


def _check(model: Model, images: Images, found: Merges) -> None:
    """Raise `NotApplicable` if merging changes the answer, as it does where a layer's output is also used elsewhere."""
    row = images[:1].to(model.device)
    with torch.no_grad(), evaluating(model.network):
        before = model(row)
        merged = merging(found).apply(model.network)
        try:
            after = model(row)
        finally:
            for merge in merged:
                merge.remove()
    if not torch.allclose(before, after, rtol=1e-3, atol=1e-3 * float(before.abs().max())):
        raise NotApplicable(
            f"merging the batch norms of model {model.name!r} changes its answers: use lrp(canonizer='none')"
        )
