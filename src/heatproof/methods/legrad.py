"""LeGrad: the positive gradients of attention, summed over the last layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.methods._support.attention_layers import Recorder, by_head, checked
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.layer_activations import differentiable, frozen
from heatproof.methods._support.transformer_stage import transformer_stage
from heatproof.methods._support.upsample import upsample
from heatproof.registry import method
from heatproof.traits import Need, Rule
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout


class Chain(NamedTuple):
    """The layers of a network whose attention counts, found in one pass."""

    blocks: dict[int, nn.Module]  # by attention layer: the outermost module that holds it alone and keeps the tokens
    tokens: int
    first: int  # tokens before the patches
    grid: tuple[int, int]
    pooling: int | None  # the attention layer by which the head pools all tokens, if it does


def chain_of(model: Model, images: Images) -> Chain:
    """The chain of a network, or `NotApplicable` for windows, merged tokens and attention outside of blocks."""
    recorder = Recorder(1, images.shape[2:])
    begun: list[int] = []
    blocks: dict[int, nn.Module] = {}

    def enter(*_: Any) -> None:
        begun.append(len(recorder.layers))

    def leave(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        start, end = begun.pop(), len(recorder.layers)
        given, answer = (value[0] if isinstance(value, tuple) and value else value for value in (inputs, output))
        fit = isinstance(given, Tensor) and isinstance(answer, Tensor) and given.shape == answer.shape
        if end == start + 1 and fit and given.ndim >= 3:
            blocks[start] = module

    handles = [module.register_forward_pre_hook(enter) for module in model.network.modules()]
    handles += [module.register_forward_hook(leave) for module in model.network.modules()]
    try:
        with frozen(model.network), differentiable(model):
            with recorder:
                answer = model(images[:1].to(model.device).detach().clone().requires_grad_()).sum()
            slopes = torch.autograd.grad(answer, recorder.layers, allow_unused=True) if recorder.layers else ()
    finally:
        for handle in handles:
            handle.remove()
    used = [at for at, slope in enumerate(slopes) if slope is not None]
    found = [recorder.layers[at] for at in used]
    tokens = checked(found, [recorder.whole[at] for at in used], "legrad")
    blocks = {at: block for at, block in blocks.items() if at in used and recorder.layers[at].shape[-2] == tokens}
    if not blocks:
        raise NotApplicable(
            "legrad needs attention inside of blocks that keep the shape of their tokens, and this network has none: "
            "take generic_attention"
        )
    first, rows, columns = recorder.patches(tokens)
    pools = tuple(found[-1].shape[-2:]) == (1, tokens)
    return Chain(blocks, tokens, first, (rows, columns), used[-1] if pools else None)


@contextmanager
def ending_at(last: nn.Module, skipped: list[nn.Module], averaged: Callable[[Tensor], Tensor] | None) -> Iterator[None]:
    """A context in which blocks after `last` hand on what they are given, and its own tokens may be averaged."""

    def handed_on(_: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        return (inputs[0], *output[1:]) if isinstance(output, tuple) else inputs[0]

    def mean(_: nn.Module, __: Any, output: Any) -> Any:
        assert averaged is not None
        return (averaged(output[0]), *output[1:]) if isinstance(output, tuple) else averaged(output)

    handles = [block.register_forward_hook(handed_on) for block in skipped]
    if averaged is not None:
        handles.append(last.register_forward_hook(mean))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def mean_of_tokens(tokens: int) -> Callable[[Tensor], Tensor]:
    """Every token replaced by the mean of all, in tokens of (B, T, K) or (T, B, K)."""

    def averaged(values: Tensor) -> Tensor:
        along = 1 if values.shape[1] == tokens else 0
        return values.mean(along, keepdim=True).expand_as(values)

    return averaged


@method("legrad")
@dataclass(frozen=True)
class LeGrad:
    """The positive gradient of each layer's own answer by its attention, over heads and queries, for the last layers.

    The answer of a layer is the network's head on that layer's tokens, with the layers after it left out. `pool="mean"`
    gives the head the mean of all tokens, class token included, as the published code does; `"own"` leaves the
    network's own reading. Where the head pools by attention, the gradient is that of the pooling's row. The published
    code uses the last two layers; `layers=0` takes all.

    Paper: Bousselham et al. 2024, "LeGrad: An Explainability Method for Vision Transformers via Feature Formation
    Sensitivity"
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"
    needs: ClassVar[tuple[Need, ...]] = ("attention",)

    layers: int = 2
    pool: Literal["mean", "own"] = "mean"
    readout: Readout = "logit"

    def __post_init__(self) -> None:
        check_count("layers", self.layers, 0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        way = engine.settled(model, batch.images, "gradient")
        if not len(batch):
            return batch.images.new_zeros(0, *batch.images.shape[2:])
        chain, parts = chain_of(model, batch.images), []
        for count, (images, targets) in engine.micro_batches(way, batch.images, batch.targets):
            found = self._weights(model, chain, images, targets.to(model.device))
            parts.append(upsample(found[:count].to(batch.images), images[:count]))
        return torch.cat(parts)

    def _weights(self, model: Model, chain: Chain, images: Images, targets: Tensor) -> Tensor:
        """(B, rows, columns) of the patches, summed over the layers."""
        order = sorted(chain.blocks)
        averaged = mean_of_tokens(chain.tokens) if self.pool == "mean" and chain.pooling is None else None
        total = torch.zeros((), device=model.device)
        with frozen(model.network), differentiable(model):
            for at in order[-self.layers :] if self.layers else order:
                recorder = Recorder(len(images), images.shape[2:])
                inputs = images.to(model.device).detach().clone().requires_grad_()
                later = [chain.blocks[after] for after in order if after > at]
                with ending_at(chain.blocks[at], later, averaged), recorder:
                    values = model.read(model(inputs), targets, self.readout).sum()
                attention = recorder.layers[at if chain.pooling is None else chain.pooling]
                (slope,) = torch.autograd.grad(values, attention, allow_unused=True, materialize_grads=True)
                support = by_head(slope, len(images)).clamp(min=0).mean((1, 2))[:, chain.first :]
                total = total + support.unflatten(1, chain.grid)
        return total

    def cost(self) -> Cost:
        return Cost(self.layers or 12, self.layers or 12)

    def stage(self) -> tuple[Model, Batch]:
        return transformer_stage()
