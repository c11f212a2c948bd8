"""Finds the last layer with places that every path to the answer passes through, by observing one forward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from heatproof.data._support import made_up
from heatproof.engine.backends.eager import evaluating
from heatproof.models._support.cam_layer import mixes_channels
from heatproof.models._support.token_layouts import Sides, as_pictures, layout
from heatproof.types import Images, Model


def last_cut(model: Model, images: Images, also: str | None = None) -> str | None:
    """The dotted name of the last block or norm that gives the picture's places (in any layout), that every path from
    the picture to the answer passes through, and on most of whose places the answer depends; after it only a class
    token may matter. If the layer `also` comes later, the result is `also`. None if there is no such layer.
    """
    shape, shown = tuple(images.shape[1:]), (images.shape[2], images.shape[3])
    runs: Counter[str] = Counter()
    gave: dict[str, Tensor] = {}

    def note(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        runs[name] += 1
        gave.pop(name, None)  # reinserted, so that layers stay in the order in which they finished last
        if isinstance(output, Tensor) and output.requires_grad and _has_places(output, shown):
            gave[name] = output

    handles = [
        module.register_forward_hook(partial(note, name))
        for name, module in model.network.named_modules()
        if name and mixes_channels(module)
    ]
    try:
        with torch.inference_mode(False), torch.enable_grad(), evaluating(model.network):
            leaf = made_up.pictures(shape, 1).to(model.device).requires_grad_()
            answer = model(leaf).amax(1).sum()
    finally:
        for handle in handles:
            handle.remove()
    cuts: list[str] = []
    for name in reversed(gave):
        if name == also:
            return also
        if runs[name] == 1 and not _passes_by(answer, gave[name], leaf):
            if _counts(answer, gave[name], shown):
                return name
            cuts.append(name)
    return also or (cuts[0] if cuts else None)  # an answer that depends on no place does not rule any layer out


def _has_places(output: Tensor, shown: Sides) -> bool:
    return len(output) == 1 and layout(output.shape, shown) is not None


def _passes_by(answer: Tensor, output: Tensor, leaf: Tensor) -> bool:
    """Whether the answer depends on the picture other than by this output."""
    return any(getattr(node, "variable", None) is leaf for node in _way_back(answer, output.grad_fn))


def _way_back(answer: Tensor, end: Node | None) -> Iterator[Node]:
    """All autograd nodes behind the answer, without those that are reached only through `end`."""
    met = {end, answer.grad_fn}
    waiting = [node for node in (answer.grad_fn,) if node is not None and node is not end]
    while waiting:
        node = waiting.pop()
        yield node
        before = [other for other, _ in node.next_functions if other is not None and other not in met]
        met.update(before)
        waiting += before


def _counts(answer: Tensor, output: Tensor, shown: Sides) -> bool:
    """Whether the answer depends on most of the output's places."""
    (slope,) = torch.autograd.grad(answer, output, retain_graph=True, allow_unused=True)
    return slope is not None and bool(as_pictures(slope, shown).ne(0).any(1).double().mean() > 0.5)
