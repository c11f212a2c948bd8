"""The gradient times the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout

InputSpace = Literal["normalised", "pixels"]


def offset(model: Model, images: Images, space: InputSpace) -> Tensor:
    """The input's distance from zero, in pixel units: from the model's mean colour, or from black.

    The gradient is taken by pixels in [0, 1], so multiplying it by `images - mean` is the same number as
    multiplying the network's own normalised input by its own gradient.
    """
    return images if space == "pixels" else images - images.new_tensor(model.mean).view(1, -1, 1, 1)


@method("input_x_gradient")
@dataclass(frozen=True)
class InputXGradient(ChannelPooled):
    """The gradient times the input: the first-order share of each pixel in the answer.

    The input is the network's own, normalised one (the mean colour counts as zero), as in published practice;
    `input="pixels"` counts from black. `pooling="abs_sum"` is the abs variant.

    Paper: Shrikumar et al. 2016, "Not Just a Black Box: Learning Important Features Through Propagating
    Activation Differences"
    """

    input: InputSpace = "normalised"
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        slopes, _ = engine.gradient(model, batch.images, batch.targets, self.readout)
        return slopes * offset(model, batch.images, self.input)

    def cost(self) -> Cost:
        return Cost(1, 1)
