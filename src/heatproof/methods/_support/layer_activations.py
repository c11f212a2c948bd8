"""Activations of a layer and their gradients; the backward pass ends at the layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from heatproof import engine
from heatproof.engine.backends.eager import evaluating
from heatproof.errors import BadInput, NotApplicable, UnknownName
from heatproof.models._support.cam_layer import LAST
from heatproof.types import Batch, Images, Logits, Model, Readout

Question: TypeAlias = Callable[[Logits, Tensor], Tensor]  # logits (rows, classes), targets (rows,) -> (rows,)
OutputHook: TypeAlias = Callable[[Any], Tensor]  # a layer's output -> what the layers after it receive instead


class Tap(NamedTuple):
    """A layer's activations and the answer's gradient with respect to them, both in the layer's own shape."""

    activations: Tensor
    gradients: Tensor


@contextmanager
def frozen(network: nn.Module) -> Iterator[None]:
    """A context in which parameters require no gradient: the pass below the layer then records nothing."""
    requiring = [parameter for parameter in network.parameters() if parameter.requires_grad]
    try:
        for parameter in requiring:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in requiring:
            parameter.requires_grad_(True)


@contextmanager
def differentiable(model: Model) -> Iterator[None]:
    """A context with gradients on and training off, whatever modes the caller has set."""
    with torch.inference_mode(False), torch.enable_grad(), evaluating(model.network):
        yield


def layer_of(model: Model, name: str) -> nn.Module:
    modules: dict[str, nn.Module] = dict(model.network.named_modules())
    if name not in modules:
        raise UnknownName.among("layer", name, [known for known in modules if known], most=12)
    return modules[name]


def tap(model: Model, batch: Batch, layer: str, readout: Readout) -> Tap:
    """The layer's output for every image, and the gradient of the target's readout with respect to it."""
    return taps(model, batch, (layer,), readout)[0]


def taps(model: Model, batch: Batch, layers: Sequence[str], readout: Readout) -> list[Tap]:
    """Taps of several layers in one forward and backward pass; nothing below the first of them is recorded."""
    return taps_of(model, batch, layers, partial(model.read, readout=readout))


def taps_of(model: Model, batch: Batch, layers: Sequence[str], question: Question) -> list[Tap]:
    """`taps` of any number that is computed from the logits and the target."""
    way = engine.settled(model, batch.images, "gradient")  # before hooks are set
    parts: list[list[Tap]] = []
    with frozen(model.network), differentiable(model), caught_at(model, layers) as caught:
        for count, (images, targets) in engine.micro_batches(way, batch.images, batch.targets):
            for outputs in caught:
                outputs.clear()
            values = question(model(images.to(model.device)), targets.to(model.device))
            for layer, outputs in zip(layers, caught, strict=True):
                if not outputs or (len(outputs) > 1 and not layer.endswith(LAST)):
                    instead = f", or {layer}{LAST} for its last run" if outputs and ":" not in layer else ""
                    raise NotApplicable(
                        f"layer {layer!r} runs {len(outputs)} times in one pass, and must run once: name another in "
                        f"the method's field layer, or as the model's cam_layer{instead}"
                    )
            every = torch.autograd.grad(values.sum(), [outputs[-1] for outputs in caught], allow_unused=True)
            part = []
            for layer, outputs, slopes in zip(layers, caught, every, strict=True):
                if slopes is None:
                    raise NotApplicable(f"the answer does not depend on layer {layer!r}: name another as cam_layer")
                part.append(Tap(outputs[-1].detach()[:count].clone(), slopes[:count].clone()))
            parts.append(part)
    return [_joined(of, batch.images.device) for of in zip(*parts, strict=True)]


def _joined(parts: Sequence[Tap], device: torch.device) -> Tap:
    activations, gradients = (torch.cat(side).to(device).float() for side in zip(*parts, strict=True))
    return Tap(activations, gradients)


@contextmanager
def caught_at(model: Model, layers: Sequence[str]) -> Iterator[list[list[Tensor]]]:
    """A context that collects each layer's outputs, one list per layer; gradients can be taken with respect to them."""
    caught: list[list[Tensor]] = [[] for _ in layers]

    def catching(layer: str, outputs: list[Tensor]) -> OutputHook:
        def catch(output: Any) -> Tensor:
            given = _one_tensor(layer, output)
            # Below the first layer nothing is recorded; a later one stays part of what follows from the first.
            seen = given if given.requires_grad else given.detach().requires_grad_()
            outputs.append(seen)
            return seen.clone()  # what follows may write in place; what was caught must stay as it was

        return catch

    handles: list[RemovableHandle] = []
    try:
        for layer, outputs in zip(layers, caught, strict=True):
            handles.append(hook_layer(model, layer, catching(layer, outputs)))
        yield caught
    finally:
        for handle in handles:
            handle.remove()


def hook_layer(model: Model, layer: str, hook: OutputHook) -> RemovableHandle:
    """Replaces a layer's output (for `NAME:input`, its input) by what `hook` makes of it, in every pass.

    `NAME:last` means the last run of a layer that runs more than once: `hook` is called for every run.
    """
    name, _, side = layer.partition(":")
    module = layer_of(model, name)
    if side == "input":
        return module.register_forward_pre_hook(lambda _, given: (hook(given[0]), *given[1:]))
    if side and f":{side}" != LAST:
        raise BadInput(
            f"a layer is called NAME, NAME:input for what it is given, or NAME{LAST} for what its last run gives, "
            f"got {layer!r}"
        )
    return module.register_forward_hook(lambda _, __, output: hook(output))


class _StopForward(Exception):
    """Ends a forward pass once the layer's output is known: the rest is not needed."""


def activations(model: Model, images: Images, layer: str) -> Tensor:
    """A layer's activations for each picture, in its own shape, without gradients; nothing above it is computed."""
    way = engine.settled(model, images, "gradient")
    parts: list[Tensor] = []
    latest: list[Tensor] = []

    def catch(output: Any) -> Tensor:
        latest[:] = [_one_tensor(layer, output)]
        if not layer.endswith(LAST):
            raise _StopForward
        return latest[0].clone()  # what follows may write in place

    handle = hook_layer(model, layer, catch)
    try:
        with torch.inference_mode(False), torch.no_grad(), evaluating(model.network):
            for count, (shown,) in engine.micro_batches(way, images):
                with suppress(_StopForward):
                    model(shown.to(model.device))
                if not latest:
                    raise NotApplicable(f"layer {layer!r} does not take part in the answer: name another layer")
                parts.append(latest.pop()[:count].clone())
    finally:
        handle.remove()
    return torch.cat(parts).to(images.device).float()


def _one_tensor(layer: str, output: Any) -> Tensor:
    if not isinstance(output, Tensor):
        raise NotApplicable(f"layer {layer!r} must give one tensor, got {type(output).__name__}: name another layer")
    return output
