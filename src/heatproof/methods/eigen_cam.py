"""Eigen-CAM: the principal component of a layer's activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.methods._support.layer_activations import activations
from heatproof.methods._support.upsample import upsample
from heatproof.methods.cam import cam_layer, coarse_map
from heatproof.models._support.token_layouts import as_pictures
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Maps, Model


def principal(pictures: Tensor) -> Tensor:
    """(K, h, w) to (h, w): the places' values along the first principal direction of their channels.

    Its sign is the one that correlates with the activations' magnitude.
    """
    places = pictures.flatten(1).T.double()
    centred = places - places.mean(0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    component = centred @ directions[0]
    size = places.abs().sum(1)
    upright = component @ (size - size.mean()) >= 0
    found: Tensor = (component if upright else -component).view(pictures.shape[1:])
    return found


@method("eigen_cam")
@dataclass(frozen=True)
class EigenCam:
    """The first principal component of a layer's activations over places; the same map for every class.

    Activations are centred, as in published code (the paper does not centre), and the sign, which a principal
    component leaves open, follows the activations' magnitude. `layer` as in grad_cam.

    Paper: Muhammad and Yeasin 2020, "Eigen-CAM: Class Activation Map using Principal Components"
    """

    normalisation: ClassVar[Rule] = "positive"

    layer: str = ""
    relu: bool = True

    caution = coarse_map

    @property
    def signed(self) -> bool:
        return not self.relu

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        found = activations(model, batch.images, self.layer or cam_layer(model, batch))
        maps = torch.stack([principal(one) for one in as_pictures(found, batch.images.shape[2:])]).to(batch.images)
        return upsample(maps.clamp(min=0) if self.relu else maps, batch.images)

    def cost(self) -> Cost:
        return Cost(1, 0)
