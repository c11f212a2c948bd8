"""Finds the layer from which class activation maps are read, by observing one forward pass."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from heatproof.engine.backends.eager import evaluating
from heatproof.errors import BadModel
from heatproof.models._support.token_layouts import Sides, layout

RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.GELU, nn.SiLU, nn.Hardswish, nn.LeakyReLU, nn.ELU, nn.Mish)
POOLINGS = (nn.AdaptiveAvgPool2d, nn.AvgPool2d, nn.AdaptiveMaxPool2d, nn.MaxPool2d)
LAST = ":last"  # after a layer's name: its output when it runs for the last time

Size = int | Sides  # of a square, or height and width


def find_cam_layer(network: nn.Module, size: Size, channels: int = 3) -> str | None:
    """The dotted name of the last layer with learnt weights whose output is still a picture, or None.

    Layers are taken in the order in which they finish, so a block comes after the convolutions inside it and wins over
    them (`layer4`, not `layer4.2.conv3`). Layers used more than once are left out, since they have several outputs,
    unless the last convolution is one of them: then the result is `NAME:last`, its last output. If its other runs reach
    the answer around that one, the result is the name alone, which is refused when the layer is read. Where a rectifier
    follows, its output is wanted: the result is the rectifier's own name or, if the rectifier is a function or shared,
    `NAME:input` of the pooling after it. A network whose only convolutions cut the picture into patches (a ViT) has no
    such layer, nor has one that continues with tokens or channels last after its convolutions: `last_cut` may find one
    there.
    """
    modules = dict(network.named_modules())
    finished: list[tuple[str, Any, Any]] = []  # in order: name, input, output

    def note(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        finished.append((name, inputs[0] if inputs else None, output))

    with _observed(network, note):
        answer_once(network, size, channels)
    if not any(_looks_around(module) for module in modules.values()):
        return None
    shown = _sides(size)
    calls = Counter(name for name, _, _ in finished)
    pictured = [name for name, _, gave in finished if _is_picture(gave, shown) and _learns(modules[name])]
    if calls[next((name for name in reversed(pictured) if _convolves(modules[name])), "")] < 2:
        finished = [one for one in finished if calls[one[0]] == 1]
    places = [at for at, (name, _, gave) in enumerate(finished) if _is_picture(gave, shown) and _learns(modules[name])]
    if not places:
        return None
    at, (last, _, answer) = places[-1], finished[places[-1]]
    if any(_goes_on(modules[name], gave, shown) for name, _, gave in finished[at + 1 :]):
        return None
    for place, (name, given, _) in enumerate(finished[at + 1 :], start=at + 1):
        if isinstance(modules[name], RECTIFIERS) and given is answer:
            at, last = place, name
            break
        if isinstance(modules[name], POOLINGS) and calls[name] == 1 and _is_rectified(given, answer, shown):
            return f"{name}:input"
    if calls[last] == 1:
        return last
    final = all(name != last for name, _, _ in finished[at + 1 :])
    return f"{last}{LAST}" if final and _leads_through(network, last, calls[last], size, channels) else last


def _leads_through(network: nn.Module, layer: str, times: int, size: Size, channels: int) -> bool:
    """Whether all outputs of a layer that runs several times reach the answer through its last output."""
    before: list[Tensor] = []

    def cut(module: nn.Module, inputs: Any, output: Any) -> Tensor:
        if len(before) == times - 1:
            return output.detach()  # type: ignore[no-any-return]
        before.append(output.detach().requires_grad_())
        return before[-1].clone()

    handle = network.get_submodule(layer).register_forward_hook(cut)
    try:
        with torch.inference_mode(False):
            answer = answer_once(network, size, channels, gradients=True)
            answer = getattr(answer, "logits", answer)
            if not isinstance(answer, Tensor) or not answer.requires_grad:
                return isinstance(answer, Tensor)
            return all(slope is None for slope in torch.autograd.grad(answer.sum(), before, allow_unused=True))
    except BadModel:  # the network runs only without gradients
        return False
    finally:
        handle.remove()


def answer_once(network: nn.Module, size: Size, channels: int = 3, gradients: bool = False) -> Any:
    """The network's answer to one grey picture, or `BadModel` with the reason."""
    like = next(network.parameters(), torch.empty(0))
    height, width = _sides(size)
    grey = torch.zeros(1, channels, height, width, device=like.device, dtype=like.dtype)
    try:
        with torch.set_grad_enabled(gradients), evaluating(network):
            return network(grey)
    except Exception as error:
        raise BadModel(
            f"the network must take images of shape (batch, {channels}, {height}, {width}), got "
            f"{type(error).__name__}: "
            f"{error}; check its input size and number of channels"
        ) from error


def takes_one_size(network: nn.Module, size: Size, channels: int = 3) -> bool:
    """Whether the network refuses a picture twice as large (plain ViTs, flattened features)."""
    try:
        answer_once(network, (2 * _sides(size)[0], 2 * _sides(size)[1]), channels)
    except BadModel:
        return True
    return False


class _observed:
    """A context with forward hooks on every layer below the network itself."""

    def __init__(self, network: nn.Module, note: Any) -> None:
        self.handles = [
            module.register_forward_hook(partial(note, name)) for name, module in network.named_modules() if name
        ]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()


def _sides(size: Size) -> Sides:
    return (size, size) if isinstance(size, int) else size


def _is_picture(output: Any, shown: Sides) -> bool:
    """Whether an output is still one picture; a batch of several would be pieces of it."""
    return isinstance(output, Tensor) and len(output) == 1 and layout(output.shape, shown) == "channels_first"


def _goes_on(module: nn.Module, output: Any, shown: Sides) -> bool:
    """Whether a block or a norm gives the picture's places in another layout."""
    one = isinstance(output, Tensor) and len(output) == 1 and mixes_channels(module)
    return one and layout(output.shape, shown) in ("channels_last", "tokens")


def _is_rectified(given: Any, answer: Tensor, shown: Sides) -> bool:
    """Whether a tensor is the layer's output with its negative part removed or shrunk, place by place."""
    if given is answer or not _is_picture(given, shown) or given.shape != answer.shape:
        return False
    return bool((given.flatten()[answer.flatten() < 0].abs() <= answer[answer < 0].abs()).all())


def _learns(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())


def mixes_channels(module: nn.Module) -> bool:
    """Whether a module is a block with linear layers, or a norm: such modules end a step of a transformer or mixer."""
    block = any(True for _ in module.children()) and any(isinstance(part, nn.Linear) for part in module.modules())
    return _learns(module) and (block or type(module).__name__.lower().endswith("norm"))


def _convolves(module: nn.Module) -> bool:
    return any(isinstance(part, nn.Conv2d) for part in module.modules())


def _looks_around(module: nn.Module) -> bool:
    """Whether a convolution does more than cut a picture into patches."""
    return isinstance(module, nn.Conv2d) and not (module.kernel_size == module.stride and module.kernel_size[0] > 1)
