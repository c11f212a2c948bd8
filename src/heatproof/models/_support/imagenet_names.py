"""The names of the thousand ImageNet classes, from an installed package."""

from __future__ import annotations

from functools import cache

from heatproof.errors import Missing
from heatproof.models._support.torchvision_repair import import_torchvision


@cache
def imagenet_classes() -> tuple[str, ...]:
    """The class names in the order of their indices; empty if torchvision is not installed."""
    try:
        torchvision = import_torchvision("the names of the ImageNet classes")
    except Missing:
        return ()
    return tuple(torchvision.models.ResNet18_Weights.DEFAULT.meta["categories"])
