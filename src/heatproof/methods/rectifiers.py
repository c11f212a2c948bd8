"""Backward passes that treat rectifiers differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.graph import Node

from heatproof.errors import NotApplicable
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Maps, Model, Readout

Rule = Literal["guided", "deconvnet"]
Slopes = tuple[Tensor | None, ...]  # at a node's inputs or outputs


def _of_clamp(node: Any) -> bool:
    """One to [0, 1] may well be meant for pictures, and is no rectifier."""
    return node._saved_min == 0 and node._saved_max in (None, 6)


def _of_maximum(node: Any) -> bool:
    """Of what passes and zeros."""
    known = [saved for (source, _), saved in zip(node.next_functions, _compared(node), strict=True) if source is None]
    return len(known) == 1 and not bool(known[0].any())


def _compared(node: Any) -> tuple[Tensor, Tensor]:
    return node._saved_self, node._saved_other


# By the name of an operation's way back, which is the same for modules, functions, tensor methods and in place: is
# what it cuts off below zero?
RECTIFIES: dict[str, Callable[[Any], bool]] = {
    "ReluBackward0": lambda _: True,
    "HardtanhBackward0": lambda node: node._saved_min_val == 0,  # what ReLU6 is made of
    "ClampBackward1": _of_clamp,
    "ClampMinBackward0": lambda node: node._saved_min == 0,
    "ThresholdBackward0": lambda node: node._saved_threshold == 0,
    "MaximumBackward0": _of_maximum,
}


def rectifiers(end: Node | None) -> Iterator[Node]:
    """All of them on the ways back from there."""
    met, waiting = {end}, [end]
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        name = node.name()
        if name.endswith("CopySlices"):
            raise NotApplicable(
                "guided_backprop, deconvnet and guided_grad_cam change how ReLUs are passed, and one may hide where a "
                "network writes into a part or another view of a tensor: set inplace=False there, or take saliency"
            )
        if name in RECTIFIES and RECTIFIES[name](node):
            yield node
        for before, _ in node.next_functions:
            if before not in met:
                met.add(before)
                waiting.append(before)


# A rectifier's own slopes are new numbers that nobody else has seen yet: they are written over.
def _guided(below: Slopes, above: Slopes) -> None:
    """Of what the rectifier lets back, only what is positive."""
    for slope in below:
        if slope is not None:
            slope.clamp_(min=0)


def _deconvnet(below: Slopes, above: Slopes) -> None:
    """All that is positive, whether the rectifier was open or not."""
    for slope in below:
        if slope is not None:
            torch.clamp(above[0], min=0, out=slope)  # type: ignore[arg-type]


def rectified_gradient(model: Model, batch: Batch, rule: Rule, readout: Readout) -> Tensor:
    """Input gradients with another way back through every ReLU and ReLU6, module, function or in place, also where it
    is spelt as cutting off what is below zero: (B, C, H, W).
    """
    met: list[Node] = []
    way = engine.settled(model, batch.images, "gradient")

    def run(normalised: Tensor) -> Any:
        answer = way.run(normalised)
        met[:] = rectifiers(getattr(getattr(answer, "logits", answer), "grad_fn", None))
        for node in met:
            node.register_hook(_guided if rule == "guided" else _deconvnet)
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
