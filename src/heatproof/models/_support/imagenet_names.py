"""The names of the thousand ImageNet classes, where an installed package knows them."""

from __future__ import annotations

from functools import cache

from heatproof.errors import Missing
from heatproof.models._support.torchvision_repair import import_torchvision


@cache
def imagenet_classes() -> tuple[str, ...]:
    """The class names in the order of the indices, or none if torchvision is not there to give them."""
    try:
        torchvision = import_torchvision("the names of the ImageNet classes")
    except Missing:
        return ()
    return tuple(torchvision.models.ResNet18_Weights.DEFAULT.meta["categories"])
