"""Models with the parameters of some layers randomised, layers in the order in which they run."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from heatproof.engine.backends.eager import evaluating
from heatproof.errors import BadInput, NotApplicable
from heatproof.types import Images, Model, keyed_seed

Draw: TypeAlias = Literal["permuted", "gaussian"]
Order: TypeAlias = Literal["top_down", "bottom_up", "independent"]
KEPT_BYTES = 512 << 20  # cached randomised copies per model; one is always kept


def layers_in_order(model: Model, images: Images) -> list[tuple[str, ...]]:
    """The names of each layer's own parameters, in the order of the first forward pass, input to output.

    A layer is a module with parameters of its own, for example a convolution, or a block with a class token and layers
    within it. Modules that never run themselves, as a projection whose weights an attention reads, come first.
    """
    network = model.network
    own = {
        name: tuple(f"{name}.{key}" if name else key for key, _ in module.named_parameters(recurse=False))
        for name, module in network.named_modules()
    }
    own = {name: keys for name, keys in own.items() if keys}
    met: list[str] = []

    def note(name: str) -> None:
        if name in own and name not in met:
            met.append(name)

    # Before it runs, so that a block's own tokens come before the layers within it.
    handles = [
        module.register_forward_pre_hook(lambda _, __, name=name: note(name))
        for name, module in network.named_modules()
    ]
    try:
        with torch.inference_mode(False), torch.no_grad(), evaluating(network):
            model(images[:1].to(model.device))
    finally:
        for handle in handles:
            handle.remove()
    seen: set[str] = set()
    ordered = []
    for name in [*(name for name in own if name not in met), *met]:
        fresh = tuple(key for key in own[name] if key not in seen)
        seen.update(fresh)
        ordered.append(fresh)
    if not ordered:
        raise NotApplicable(f"model {model.name!r} has no parameters that could be randomised")
    return ordered


def stages(layers: Sequence[tuple[str, ...]], order: Order, most: int) -> list[tuple[str, ...]]:
    """The parameters to randomise at each of at most `most` stages, evenly spaced over the layers.

    `top_down` begins at the output and `bottom_up` at the input, each stage including those before; with
    `independent` the layers between two stages are randomised by themselves.
    """
    if most < 1:
        raise BadInput(f"stages must be at least 1, got {most}")
    walk = list(layers) if order == "bottom_up" else list(layers)[::-1]
    count = min(most, len(walk))
    ends = [round((stage + 1) * len(walk) / count) for stage in range(count)]
    starts = [0, *ends[:-1]] if order == "independent" else [0] * count
    return [tuple(key for layer in walk[first:end] for key in layer) for first, end in zip(starts, ends, strict=True)]


def redrawn(values: Tensor, draw: Draw, dice: torch.Generator) -> Tensor:
    """The tensor's own entries in random order, or Gaussian noise with its mean and deviation."""
    if draw == "permuted":
        order = torch.randperm(values.numel(), generator=dice).to(values.device)
        return values.flatten()[order].view_as(values)
    noise = torch.randn(values.shape, generator=dice).to(values)
    deviation = values.std() if values.numel() > 1 else values.abs().mean()
    return values.mean() + deviation * noise


def randomised(model: Model, names: Sequence[str], draw: Draw = "permuted", seed: int = 0) -> Model:
    """The model with these parameters randomised, one generator per parameter: equal shapes get different draws.

    Batch-norm statistics and other buffers stay, since they are not parameters. Copies are cached with the model.
    """
    kept: dict[object, Model] = vars(model).setdefault("_randomised", {})
    key = (model.revision, tuple(names), draw, seed)
    if key not in kept:
        size = sum(values.nbytes for values in model.network.parameters())
        while kept and (len(kept) + 1) * size > KEPT_BYTES:
            kept.pop(next(iter(kept)))
        with torch.inference_mode(False), torch.no_grad():
            network = copy.deepcopy(model.network)
            parameters = dict(network.named_parameters())
            for name in names:
                dice = torch.Generator().manual_seed(keyed_seed(seed, "randomised", name))
                parameters[name].copy_(redrawn(parameters[name].clone(), draw, dice))
        title = f"{model.name} with {len(names)} parameters drawn anew"
        kept[key] = dataclasses.replace(model, name=title, network=network)
    return kept[key]
