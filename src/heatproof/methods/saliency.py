"""Saliency: the gradient of the answer with respect to each pixel."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.registry import method
from heatproof.types import Batch, Cost, Model, Readout


@method
@dataclass(frozen=True)
class Saliency(ChannelPooled):
    """The magnitude of the gradient: the sensitivity of the answer to each pixel.

    Magnitude by default; `signed` keeps the sign of every channel.

    Paper: Simonyan et al. 2014, "Deep Inside Convolutional Networks: Visualising Image Classification Models
    and Saliency Maps"
    """

    signed: bool = False
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        slopes, _ = engine.gradient(model, batch.images, batch.targets, self.readout)
        return slopes if self.signed else slopes.abs()

    def cost(self) -> Cost:
        return Cost(1, 1)
