"""Explanations built into B-cos networks: their weights for an input are the explanation.

A B-cos network is recognised by its method `explanation_mode()`, a context manager inside which the backward pass
treats the input-dependent weights as constants. Where it encodes the picture first ([r, g, b, 1-r, 1-g, 1-b]), that
module is called `encoding`, and contributions are read at its output.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from torch import Tensor

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.layer_activations import tap
from heatproof.registry import method
from heatproof.types import Batch, Cost, Model


@runtime_checkable
class SelfExplaining(Protocol):
    """A B-cos network."""

    def explanation_mode(self) -> AbstractContextManager[object]: ...


@method("bcos")
@dataclass(frozen=True)
class BCos(ChannelPooled):
    """A B-cos network's own contributions: its input times the weights it computes for that input.

    Applies to B-cos networks only.

    Paper: Böhle et al. 2022, "B-cos Networks: Alignment is All We Need for Interpretability"
    """

    pooling: Pooling = "sum"

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        if not isinstance(model.network, SelfExplaining):
            raise NotApplicable(
                f"bcos reads the explanation built into a B-cos network, and model {model.name!r} is not one "
                "(it has no explanation_mode): load a B-cos model, or take integrated_gradients or input_x_gradient"
            )
        engine.batch_size(model, batch.images, "gradient")  # settled on the network as it is
        with cast(SelfExplaining, model.network).explanation_mode():
            if "encoding" in dict(model.network.named_modules()):
                caught = tap(model, batch, "encoding", "logit")
                return caught.activations * caught.gradients
            slopes, _ = engine.gradient(model, batch.images, batch.targets, "logit")
            mean = slopes.new_tensor(model.mean).view(1, -1, 1, 1)
            return slopes * (batch.images - mean)

    def cost(self) -> Cost:
        return Cost(1, 1)
