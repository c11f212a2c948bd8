"""HiResCAM: activations times gradients, place by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from heatproof.errors import NotApplicable
from heatproof.methods._support.upsample import upsample
from heatproof.methods.cam import coarse_map, pictured, weigh
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout

CANCELLED = 1e-3  # of the sum without signs: rounding, and what is added to a norm's variance


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
        check_not_cancelled(caught.activations * caught.gradients)
        return upsample(weigh(caught.activations, caught.gradients, self.relu), batch.images)

    def cost(self) -> Cost:
        return Cost(1, 1)


def check_not_cancelled(products: Tensor) -> None:
    """Raise where activation times gradient (B, K, h, w) adds up to nothing at every place.

    A norm over channels behind the layer does not change with the length of its input, so that gradients are orthogonal
    to it: what is left is rounding.
    """
    left, whole = products.sum(1).abs().max(), products.abs().sum(1).max()
    if float(whole) > 0 and float(left) < CANCELLED * float(whole):
        raise NotApplicable(
            "hires_cam is zero where a norm over channels follows its layer, since activations times gradients add up "
            "to nothing there, as they do in this network: name another layer, or take grad_cam"
        )
