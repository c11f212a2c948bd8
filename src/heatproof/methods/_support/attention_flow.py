"""Attention of all layers with its gradients, and the way from tokens to a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.methods._support.attention_layers import Recorder, by_head, checked
from heatproof.methods._support.layer_activations import Question, differentiable, frozen
from heatproof.methods._support.upsample import upsample
from heatproof.types import Batch, Images, Maps, Model, Readout

SAME = 1e-3  # of a gradient's norm: below it two tokens are read alike
UNREAD = 1e-6  # share of the largest gradient: below it a token is not read at all


@dataclass(frozen=True, eq=False)
class Flow:
    """The attention of some pictures, layer by layer, and what the head reads."""

    layers: list[Tensor]  # (B, heads, queries, keys) each: what flows, not averaged over heads
    slopes: list[Tensor]  # the answer's gradient with respect to the attention
    read: Tensor  # (B, tokens): how much the head reads of each token; sums to 1
    first: int  # tokens before the patches
    grid: tuple[int, int]
    tokens: int

    def laid_out(self, weights: Tensor, images: Images) -> Maps:
        """Weights of tokens (B, tokens or one more) as maps of the pictures' size; tokens before the patches drop."""
        count = self.grid[0] * self.grid[1]
        return upsample(weights[:, -count:].unflatten(1, self.grid).float().to(images), images)


def flows(model: Model, batch: Batch, readout: Readout, who: str) -> Iterator[tuple[Images, Tensor, Flow]]:
    """Micro-batches of the pictures with their targets, and their attention with gradients."""
    way = engine.settled(model, batch.images, "gradient")  # before hooks are set
    for count, (images, targets) in engine.micro_batches(way, batch.images, batch.targets):
        found = flow_of(model, images, targets, partial(model.read, readout=readout), who)
        yield (
            images[:count],
            targets[:count],
            Flow(
                [layer[:count] for layer in found.layers],
                [slope[:count] for slope in found.slopes],
                found.read[:count],
                found.first,
                found.grid,
                found.tokens,
            ),
        )


def flow_of(model: Model, images: Images, targets: Tensor, question: Question, who: str) -> Flow:
    """Attention and its gradients of one micro-batch, in one forward and one backward pass."""
    rows = len(images)
    with frozen(model.network), differentiable(model):
        recorder = Recorder(rows, images.shape[2:])
        leaf = images.to(model.device).detach().clone().requires_grad_()
        with recorder:
            logits = model(leaf)
        values = question(logits, targets.to(model.device)).sum()
        layers = recorder.layers
        slopes = torch.autograd.grad(values, layers, allow_unused=True, retain_graph=True) if layers else ()
        # A pooling may run without leading to the answer.
        used = [at for at, slope in enumerate(slopes) if slope is not None]
        found = [layers[at] for at in used]
        tokens = checked(found, [recorder.whole[at] for at in used], who)
        pooled = found[-1].shape[-2] == 1  # the last layer is the head's own reading
        held = [value for value in recorder.after[used[-1]] if value.requires_grad]
        reading = None if pooled or not held else _last(torch.autograd.grad(values, held, allow_unused=True))
    layers = [by_head(layer.detach(), rows) for layer in found]
    first, *grid = recorder.patches(tokens)
    if pooled:
        weights = torch.ones(rows, 1, device=layers[-1].device)
    elif reading is None:
        raise NotApplicable(
            f"{who} needs a head that reads tokens, and what this network's head reads cannot be seen: take attn_lrp "
            "or libra_grad"
        )
    else:
        weights = read_of(reading.reshape(rows, tokens, -1), first)
    gradients = [by_head(slope, rows) for slope in slopes if slope is not None]
    return Flow(layers, gradients, weights.float(), first, (grid[0], grid[1]), tokens)


def _last(slopes: Sequence[Tensor | None]) -> Tensor | None:
    return next((slope for slope in reversed(slopes) if slope is not None), None)


def read_of(slopes: Tensor, first: int) -> Tensor:
    """(B, tokens): the share of each token in what the head reads, from the gradient (B, tokens, K) before it.

    Tokens that are averaged have the same gradient and count as one reading; each token before the patches that is
    read in another way is one more: a class token, or the two of a distilled network.
    """
    size = slopes.norm(dim=2)
    used = size > UNREAD * size.amax(1, keepdim=True).clamp(min=torch.finfo(size.dtype).tiny)
    patches = used.clone()
    patches[:, :first] = False
    count = patches.sum(1, keepdim=True)
    mean = (slopes * patches[..., None]).sum(1, keepdim=True) / count[..., None].clamp(min=1)
    like = (slopes - mean).norm(dim=2) <= SAME * mean.norm(dim=2)
    together = patches | (used & like & (count > 0))  # averaged, with or without tokens before the patches
    alone = used & ~together
    readings = alone.sum(1, keepdim=True) + (count > 0)
    share: Tensor = together / together.sum(1, keepdim=True).clamp(min=1) + alone
    shares: Tensor = share / readings.clamp(min=1)
    return shares


def through(flow: Flow, steps: Sequence[Tensor], skip: int = 0, even: bool = False, own: float = 1.0) -> Tensor:
    """(B, tokens): what the head reads, followed back through the layers' steps R ← (own + step) R, from layer `skip`
    on.

    `own` is how much of itself a token keeps. With `even` the rows of own + step are made to sum to one. A last step of
    one query is a pooling, or belongs to a token that was added after the layers before it.
    """
    steps = [step if at >= min(skip, len(steps) - 1) else torch.zeros_like(step) for at, step in enumerate(steps)]
    square = [step for step in steps if step.shape[-2] == step.shape[-1]]
    rest = steps[len(square) :]
    identity = own * torch.eye(flow.tokens, device=steps[0].device, dtype=steps[0].dtype)
    reached = torch.eye(flow.tokens, device=steps[0].device, dtype=steps[0].dtype).expand_as(square[0])
    for step in square:
        reached = _even(identity + step, even) @ reached
    if not rest:
        return (flow.read[:, None].to(reached) @ reached)[:, 0]
    if rest[0].shape[-1] == flow.tokens:
        return (rest[0] @ reached)[:, 0]
    row = torch.zeros_like(rest[0][:, 0])
    row[:, 0] = 1.0  # the added token asks; the others stay as they are
    for step in reversed(rest):  # row · (own + step), whose first row alone is not the identity's
        mixed = step[:, 0].clone()
        mixed[:, 0] += own
        mixed = _even(mixed, even)
        row = torch.cat([torch.zeros_like(row[:, :1]), row[:, 1:]], 1) + row[:, :1] * mixed
    return (row[:, None, 1:] @ reached)[:, 0]


def _even(mixed: Tensor, even: bool) -> Tensor:
    return mixed / mixed.sum(-1, keepdim=True) if even else mixed
