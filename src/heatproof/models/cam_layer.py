"""Which layer activation maps are read from, found by looking at one forward pass."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from heatproof.errors import BadModel


def find_cam_layer(network: nn.Module, size: int, channels: int = 3) -> str | None:
    """The dotted name of the last layer with learnt weights whose output is still a picture, or None.

    Layers are taken in the order in which they finish, so a block comes after the convolutions inside it and
    wins over them (`layer4`, not `layer4.2.conv3`). Layers used more than once are left out, since their
    output is not one thing. A network whose only convolutions cut the picture into patches (a ViT) has no
    such layer.
    """
    finished: list[str] = []
    calls: dict[str, int] = {}

    def note(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        calls[name] = calls.get(name, 0) + 1
        if _is_picture(output):
            finished.append(name)

    with _observed(network, note):
        answer_once(network, size, channels)
    modules = dict(network.named_modules())
    if not any(_looks_around(module) for module in modules.values()):
        return None
    spatial = [name for name in finished if calls[name] == 1 and _learns(modules[name])]
    return spatial[-1] if spatial else None


def answer_once(network: nn.Module, size: int, channels: int = 3) -> Any:
    """The network's answer to one grey picture, or `BadModel` with the reason."""
    like = next(network.parameters(), torch.empty(0))
    grey = torch.zeros(1, channels, size, size, device=like.device, dtype=like.dtype)
    training = network.training
    try:
        with torch.no_grad():
            return network.eval()(grey)
    except Exception as error:
        raise BadModel(
            f"the network must take images of shape (batch, {channels}, {size}, {size}), got "
            f"{type(error).__name__}: "
            f"{error}; check its input size and number of channels"
        ) from error
    finally:
        network.train(training)


def takes_one_size(network: nn.Module, size: int, channels: int = 3) -> bool:
    """True for networks that refuse a picture twice as large (plain ViTs, flattened features)."""
    try:
        answer_once(network, 2 * size, channels)
    except BadModel:
        return True
    return False


class _observed:
    """Forward hooks on every layer below the network itself, for the duration of a `with`."""

    def __init__(self, network: nn.Module, note: Any) -> None:
        self.handles = [
            module.register_forward_hook(partial(note, name)) for name, module in network.named_modules() if name
        ]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()


def _is_picture(output: Any) -> bool:
    # The probe is square, so unequal sides are another layout (Swin keeps channels last).
    return isinstance(output, Tensor) and output.ndim == 4 and output.shape[2] == output.shape[3] > 1


def _learns(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())


def _looks_around(module: nn.Module) -> bool:
    """A convolution that is more than the cutting of a picture into patches."""
    return isinstance(module, nn.Conv2d) and not (module.kernel_size == module.stride and module.kernel_size[0] > 1)
