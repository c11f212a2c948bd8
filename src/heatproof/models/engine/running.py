"""Ways to run a network: forward (normalised images in, its answer out), and back to the input."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from heatproof.models.engine.choice import Layout
from heatproof.models.engine.identity import HOOKS
from heatproof.models.engine.setting import Precision
from heatproof.models.engine.steady import steadied
from heatproof.types import Images, Logits, Model

Runner: TypeAlias = Callable[[Tensor], Any]  # the answer is checked by whoever asked


def eager(network: nn.Module, layout: Layout, precision: Precision = "full") -> Runner:
    """A copy of the network, in one memory layout; its linear layers are made steady."""
    return _in_layout(steadied(network), layout, precision)


def _in_layout(network: nn.Module, layout: Layout, precision: Precision) -> Runner:
    memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    network = network.to(memory_format=memory)  # type: ignore[call-overload]

    def run(normalised: Tensor) -> Any:
        low = torch.autocast(normalised.device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()
        with low:
            return network(normalised.contiguous(memory_format=memory))

    return run


def compiled(network: nn.Module, layout: Layout, precision: Precision = "full") -> Runner:
    """The network compiled by torch: slow to start, for those who know that it pays."""
    return _in_layout(torch.compile(network), layout, precision)  # type: ignore[arg-type]


def untouched(network: nn.Module) -> Runner:
    """The very network, hooks and all."""

    def run(normalised: Tensor) -> Any:
        with evaluating(network):
            return network(normalised)

    return run


def twin(network: nn.Module) -> nn.Module:
    """A copy to rearrange freely; it shares nothing with the network."""
    return copy.deepcopy(network).eval().requires_grad_(False)


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """No layer in training for a while; each as it was afterwards."""
    training = [module for module in network.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def operations_replaced() -> bool:
    """Whether somebody sees or replaces the operations of the network they know: they must meet that network."""
    return bool(torch._C._len_torch_function_stack())


@contextmanager
def unheard(network: nn.Module) -> Iterator[None]:
    """No hook hears what passes for a while: a measurement must not be taken for the work."""
    stored = [(module, name, getattr(module, name)) for module in network.modules() for name in HOOKS]
    for module, name, hooks in stored:
        setattr(module, name, type(hooks)())
    try:
        yield
    finally:
        for module, name, hooks in stored:
            setattr(module, name, hooks)


def input_gradient(
    model: Model, images: Images, value: Callable[[Logits], Tensor], run: Runner | None = None
) -> tuple[Tensor, Tensor]:
    """The gradient of each row's value with respect to its image, and the values; nothing else is touched.

    `run` answers instead of the network itself.
    """
    with torch.inference_mode(False), torch.enable_grad():
        images = images.clone() if images.is_inference() else images.detach()
        inputs = images.to(model.device, memory_format=torch.contiguous_format).requires_grad_()
        values = value(answered(model, inputs, run or untouched(model.network)))
        (gradients,) = torch.autograd.grad(values.sum(), inputs)
    return gradients.detach().contiguous(), values.detach()


def answered(model: Model, images: Images, run: Runner) -> Logits:
    """What a runner says about images in [0, 1], differentiable, checked to be logits."""
    return model.logits(run(model.normalised(images).to(model.dtype)), len(images))
