"""Guided backpropagation and the deconvnet: backward passes with another rule at rectifiers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.graph import Node

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.op_override import Intercept, Spelling, spellings
from heatproof.registry import method
from heatproof.types import Batch, Cost, Model, Readout

Rule = Literal["guided", "deconvnet"]
Slopes = tuple[Tensor | None, ...]  # at a node's inputs or outputs


def _of_clamp(node: Any) -> bool:
    """Whether a clamp is a rectifier; one to [0, 1] may be meant for pictures and is none."""
    return node._saved_min == 0 and node._saved_max in (None, 6)


def _of_tensors(node: Any) -> bool:
    """Whether a clamp with tensors as bounds is a rectifier: zeros below, no bound above."""
    return node._saved_max is None and node._saved_min is not None and not bool(node._saved_min.any())


def _of_maximum(node: Any) -> bool:
    """Whether a maximum is a rectifier: one side passes, the other is all zeros."""
    both = zip(node.next_functions, (node._saved_self, node._saved_other), strict=True)
    known, passing = sorted(both, key=lambda pair: pair[0][0] is not None)
    if known[0][0] is not None or passing[0][0] is None or bool(known[1].any()):
        return False
    return bool(torch.broadcast_shapes(known[1].shape, passing[1].shape) == passing[1].shape)


# Whether an operation cuts off what is below zero, by the name of its autograd node, which is the same for modules,
# functions, tensor methods and in-place forms.
RECTIFIES: dict[str, Callable[[Any], bool]] = {
    "ReluBackward0": lambda _: True,
    "HardtanhBackward0": lambda node: node._saved_min_val == 0,  # what ReLU6 is made of
    "LeakyReluBackward0": lambda node: node._saved_negative_slope == 0,
    "ClampBackward0": _of_tensors,
    "ClampBackward1": _of_clamp,
    "ClampMinBackward0": lambda node: node._saved_min == 0,
    "ClampMinBackward1": lambda node: not bool(node._saved_min.any()),
    "ThresholdBackward0": lambda node: node._saved_threshold == 0,
    "MaximumBackward0": _of_maximum,
    "FmaxBackward0": _of_maximum,
}


def ways_back(answer: Any) -> list[Node]:
    """All autograd nodes between the input and an answer."""
    end = getattr(getattr(answer, "logits", answer), "grad_fn", None)
    met: dict[Node, None] = {} if end is None else {end: None}
    waiting = list(met)
    while waiting:
        for before, _ in waiting.pop().next_functions:
            if before is not None and before not in met:
                met[before] = None
                waiting.append(before)
    return list(met)


def hides_others(node: Node) -> bool:
    """Whether a node writes into a view of a tensor, which hides the nodes that made it."""
    return node.name().endswith("CopySlices")


def rectifies(node: Node) -> bool:
    rule = RECTIFIES.get(node.name())
    return rule is not None and rule(node)


def out_of_place() -> Intercept:
    """A context in which in-place activations are computed in new memory and then copied over their input."""

    def beside(way: Spelling) -> Callable[..., Tensor]:
        def activation(values: Tensor, *rest: Any, **named: Any) -> Tensor:
            inplace = way.inplace or named.pop("inplace", False)
            if rest and isinstance(rest[-1], bool):
                *rest, last = rest  # type: ignore[assignment]
                inplace = inplace or last
            if not inplace:
                return way.plain(values, *rest, **named)  # type: ignore[no-any-return]
            return values.copy_(way.plain(values.clone(), *rest, **named))  # what autograd saved stays intact

        return activation

    names = ("relu", "relu6", "hardtanh", "clamp", "clip", "clamp_min", "threshold", "leaky_relu")
    return Intercept({way.spelt: beside(way) for name in names for way in spellings(name)})


# A rectifier's own slopes are fresh tensors that are used nowhere else yet, so they may be overwritten.
def _guided(below: Slopes, above: Slopes) -> None:
    """Guided backpropagation: keeps the positive part of what the rectifier passes back."""
    for slope in below:
        if slope is not None:
            slope.clamp_(min=0)


def _deconvnet(below: Slopes, above: Slopes) -> None:
    """Deconvnet: passes back all that is positive, whether the rectifier was open or not."""
    for slope in below:
        if slope is not None:
            torch.clamp(above[0], min=0, out=slope)  # type: ignore[arg-type]


def rectified_gradient(model: Model, batch: Batch, rule: Rule, readout: Readout) -> Tensor:
    """Input gradients (B, C, H, W) with another backward rule at every ReLU and ReLU6: module, function or in place,
    also where it is written as `clamp`, `threshold` or `maximum`.

    Rectifiers written with a mask (`torch.where(x > 0, x, 0)`, `x * (x > 0)`) or as a custom autograd function cannot
    be distinguished from other operations and keep their gradient.
    """
    met: list[bool] = []
    way = engine.settled(model, batch.images, "gradient")

    def run(normalised: Tensor) -> Any:
        answer = way.run(normalised)
        nodes = ways_back(answer)
        if any(map(hides_others, nodes)):
            with out_of_place():
                answer = way.run(normalised)
            nodes = ways_back(answer)
        for node in filter(rectifies, nodes):
            node.register_hook(_guided if rule == "guided" else _deconvnet)
            met.append(True)
        return answer

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
class GuidedBackprop(ChannelPooled):
    """The gradient with every negative signal stopped at every rectifier.

    Paper: Springenberg et al. 2015, "Striving for Simplicity: The All Convolutional Net"
    """

    pooling: Pooling = "sum"
    readout: Readout = "logit"

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        return rectified_gradient(model, batch, "guided", self.readout)

    def cost(self) -> Cost:
        return Cost(1, 1)


@method("deconvnet")
@dataclass(frozen=True)
class DeconvNet(ChannelPooled):
    """The gradient with rectifiers applied to the backward signal instead of by the forward pass.

    Paper: Zeiler & Fergus 2014, "Visualizing and Understanding Convolutional Networks"
    """

    pooling: Pooling = "sum"
    readout: Readout = "logit"

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        return rectified_gradient(model, batch, "deconvnet", self.readout)

    def cost(self) -> Cost:
        return Cost(1, 1)
