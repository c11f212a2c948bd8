"""A method with the sign the wrong way round would be caught here: the object is known to be the evidence."""

from __future__ import annotations

import functools

import cheaper
import pytest
import torch

from heatproof import registry
from heatproof.border import attribute
from heatproof.methods.controls import Inverted
from heatproof.testing import stage
from heatproof.types import Maps

# Maps of elsewhere, networks of a kind of their own, and concepts instead of pixels are tested in their own files.
ELSEWHERE = {"precomputed", "bcos", "attention_rollout", "tcav"}
CONTESTANTS = [
    name
    for name in registry.names("method")
    if name not in ELSEWHERE and not getattr(registry.find("method", name), "control", False)
]


# One segment alone says little, and a deconvnet hardly knows its class: these two need more pictures, and the
# latter the plain network it was made for, before their sign shows.
STAGES = {"arch_attribute": (32, "embedded:object"), "deconvnet": (32, "embedded:object_plain")}
planted = functools.cache(stage)


def share_inside(maps: Maps, regions: torch.Tensor) -> torch.Tensor:
    """How much of the positive mass lies on the object, against the object's share of the picture."""
    positive = maps.clamp(min=0).double()
    inside = (positive * regions).sum((1, 2)) / positive.sum((1, 2)).clamp(min=1e-300)
    return inside / regions.double().mean((1, 2))


@pytest.mark.parametrize("name", CONTESTANTS)
def test_positive_mass_lies_on_the_planted_object(name: str) -> None:
    model, batch = planted(*STAGES.get(name, (6, "embedded:object")))
    assert batch.regions is not None
    method = registry.find("method", name, **cheaper.METHODS.get(name, {}))
    upright = share_inside(attribute(model, batch, method).maps, batch.regions).mean()
    turned = share_inside(attribute(model, batch, Inverted(method)).maps, batch.regions).mean()
    assert upright > turned, f"{upright:.2f} times its share of the picture, inverted {turned:.2f}"
    assert upright > 1, f"the object has {upright:.2f} times its share of the picture's positive mass"
