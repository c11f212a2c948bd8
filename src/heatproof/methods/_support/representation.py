"""What a network makes of a picture before its last layer decides: its representation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.data._support import made_up
from heatproof.engine.backends.eager import evaluating
from heatproof.methods._support.layer_activations import activations, hook_layer
from heatproof.types import Images, Model


def representation_layer(model: Model, images: Images) -> str | None:
    """The input of the last linear layer that runs, as a layer is named, where it is one vector per picture.

    None for networks that end otherwise (a convolution, a product with text features): their answer is the nearest
    there is to a representation.
    """
    found: list[tuple[str, tuple[int, ...]]] = []
    handles = [
        module.register_forward_hook(lambda _, given, __, name=name: found.append((name, tuple(given[0].shape))))
        for name, module in model.network.named_modules()
        if isinstance(module, nn.Linear)
    ]
    try:
        with torch.inference_mode(), evaluating(model.network):
            model(made_up.pictures(tuple(images.shape[1:]), 1).to(model.device))
    finally:
        for handle in handles:
            handle.remove()
    return f"{found[-1][0]}:input" if found and len(found[-1][1]) == 2 else None


def representations(model: Model, images: Images, layer: str | None) -> Tensor:
    """(B, features): what the network makes of each picture."""
    if layer is None:
        return engine.forward(model, images).float()
    return activations(model, images, layer).flatten(1)


@contextmanager
def latest_representation(model: Model, layer: str | None) -> Iterator[list[Tensor]]:
    """A context in which the list holds the representation of the latest forward pass, differentiable; it stays empty
    where the answer itself stands for it.
    """
    latest: list[Tensor] = []
    if layer is None:
        yield latest
        return

    def catch(given: Tensor) -> Tensor:
        latest[:] = [given]
        return given

    handle = hook_layer(model, layer, catch)
    try:
        yield latest
    finally:
        handle.remove()
        latest.clear()
