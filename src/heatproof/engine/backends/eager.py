"""The eager back-end: forward passes (normalised images in, the network's answer out) and input gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from heatproof.engine.choice import Layout
from heatproof.types import Images, Logits, Model

Runner: TypeAlias = Callable[[Tensor], Any]


def in_layout(network: nn.Module, layout: Layout) -> Runner:
    """A runner whose network is moved into a memory layout for good: pass a copy."""
    memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    network = network.to(memory_format=memory)  # type: ignore[call-overload]
    return lambda normalised: network(normalised.contiguous(memory_format=memory))


def untouched(network: nn.Module) -> Runner:
    """A runner of the network itself, with its hooks."""

    def run(normalised: Tensor) -> Any:
        with evaluating(network):
            return network(normalised)

    return run


def copied(network: nn.Module) -> nn.Module:
    """A copy that may be rearranged freely; it shares nothing with the network."""
    return copy.deepcopy(network).eval().requires_grad_(False)


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """A context in which no layer is in training mode; each gets its own mode back afterwards."""
    training = [module for module in network.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def operations_replaced() -> bool:
    """Whether torch's operations are intercepted now, by code that expects the network itself and not a copy."""
    return bool(torch._C._len_torch_function_stack())


def input_gradient(
    model: Model, images: Images, value: Callable[[Logits], Tensor], run: Runner | None = None
) -> tuple[Tensor, Tensor]:
    """The gradient of each row's value with respect to its image, and the values; parameters get no gradients.

    `run` stands in for the network.
    """
    with torch.inference_mode(False), torch.enable_grad():
        images = images.clone() if images.is_inference() else images.detach()
        inputs = images.to(model.device, memory_format=torch.contiguous_format).requires_grad_()
        values = value(answered(model, inputs, run or untouched(model.network)))
        (gradients,) = torch.autograd.grad(values.sum(), inputs)
    return gradients.detach().contiguous(), values.detach()


def answered(model: Model, images: Images, run: Runner) -> Logits:
    """A runner's logits for images in [0, 1], checked in shape; differentiable."""
    return model.logits(run(model.normalised(images).to(model.dtype)), len(images))
