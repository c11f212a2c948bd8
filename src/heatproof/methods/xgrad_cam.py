"""XGrad-CAM: gradients averaged with the activations as weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.methods._support.layer_activations import Tap
from heatproof.methods._support.upsample import upsample
from heatproof.methods.cam import coarse_map, pictured, weigh
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout

NOTHING = 1e-6  # of the largest sum of magnitudes: activations that cancel to less have no average


def activation_weighted(caught: Tap) -> Tensor:
    """Σ gradient · activation / Σ activation per channel, (B, K, 1, 1); 0 where activations cancel out."""
    activations, gradients = caught
    total = activations.sum((2, 3), keepdim=True)
    size = activations.abs().sum((2, 3), keepdim=True).amax(1, keepdim=True)
    weights = (gradients * activations).sum((2, 3), keepdim=True) / total.where(total != 0, 1.0)
    return torch.where(total.abs() > NOTHING * size, weights, 0.0)


@method("xgrad_cam")
@dataclass(frozen=True)
class XGradCam:
    """Grad-CAM whose mean gradients are weighted by the activations, so that maps add up like the first-order change.

    Meant for activations behind a rectifier: a channel whose activations cancel out has no weight.
    `layer` as in grad_cam.

    Paper: Fu et al. 2020, "Axiom-based Grad-CAM: Towards Accurate Visualization and Explanation of CNNs"
    """

    normalisation: ClassVar[Rule] = "positive"

    layer: str = ""
    relu: bool = True
    readout: Readout = "logit"

    caution = coarse_map

    @property
    def signed(self) -> bool:
        return not self.relu

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        caught = pictured(model, batch, self.layer, self.readout)
        return upsample(weigh(caught.activations, activation_weighted(caught), self.relu), batch.images)

    def cost(self) -> Cost:
        return Cost(1, 1)
