"""HiResCAM: activations times gradients, place by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from heatproof.methods._support.upsample import upsample
from heatproof.methods.cam import coarse_map, pictured, weigh
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout


@method("hires_cam")
@dataclass(frozen=True)
class HiResCam:
    """Activations times their gradients, place by place; without Grad-CAM's averaging of gradients.

    Before a single linear layer the map, `relu` off, is exactly what each place adds to the logit. `layer` as in
    grad_cam.

    Paper: Draelos and Carin 2020, "Use HiResCAM instead of Grad-CAM for faithful explanations of convolutional
    neural networks"
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
        return upsample(weigh(caught.activations, caught.gradients, self.relu), batch.images)

    def cost(self) -> Cost:
        return Cost(1, 1)
