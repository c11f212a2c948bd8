"""A layer's activations and their gradients, with nothing computed below the layer's own backward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heatproof.errors import NotApplicable, UnknownName
from heatproof.models import engine
from heatproof.models.engine.running import evaluating
from heatproof.types import Batch, Model, Readout, read


class Tap(NamedTuple):
    """What a layer said and how the answer depends on it, both in the layer's own shape."""

    activations: Tensor
    gradients: Tensor


@contextmanager
def frozen(network: nn.Module) -> Iterator[None]:
    """Parameters that ask for no gradient, for a while: the pass below the layer then records nothing."""
    asking = [parameter for parameter in network.parameters() if parameter.requires_grad]
    try:
        for parameter in asking:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in asking:
            parameter.requires_grad_(True)


@contextmanager
def differentiable(model: Model) -> Iterator[None]:
    """Gradients on and training off, whatever the caller is in."""
    with torch.inference_mode(False), torch.enable_grad(), evaluating(model.network):
        yield


def layer_of(model: Model, name: str) -> nn.Module:
    modules: dict[str, nn.Module] = dict(model.network.named_modules())
    if name not in modules:
        raise UnknownName.among("layer", name, [known for known in modules if known])
    return modules[name]


def tap(model: Model, batch: Batch, layer: str, readout: Readout) -> Tap:
    """The layer's output for every image and the gradient of what the model says about the target by it."""
    module = layer_of(model, layer)
    size = engine.batch_size(model, batch.images, "gradient")
    caught: list[Tensor] = []

    def catch(_: nn.Module, __: Any, output: Any) -> Tensor:
        if not isinstance(output, Tensor):
            raise NotApplicable(
                f"layer {layer!r} must give one tensor, got {type(output).__name__}: name another layer"
            )
        leaf = output.detach().requires_grad_()
        caught.append(leaf)
        return leaf.clone()  # what follows may write in place; what was caught must stay as it was

    parts: list[Tap] = []
    handle = module.register_forward_hook(catch)
    try:
        with frozen(model.network), differentiable(model):
            for images, targets in zip(batch.images.split(size), batch.targets.split(size), strict=True):
                caught.clear()
                rows = torch.arange(size, device=images.device).clamp(max=len(images) - 1)
                values = read(model(images[rows].to(model.device)), targets[rows].to(model.device), readout)
                if len(caught) != 1:
                    raise NotApplicable(
                        f"layer {layer!r} runs {len(caught)} times in one pass: name another as cam_layer"
                    )
                (slopes,) = torch.autograd.grad(values.sum(), caught[0], allow_unused=True)
                if slopes is None:
                    raise NotApplicable(f"the answer does not depend on layer {layer!r}: name another as cam_layer")
                count = len(images)
                parts.append(Tap(caught[0].detach()[:count].clone(), slopes[:count].clone()))
    finally:
        handle.remove()
    activations, gradients = (torch.cat(part).to(batch.images.device) for part in zip(*parts, strict=True))
    return Tap(activations.float(), gradients.float())
