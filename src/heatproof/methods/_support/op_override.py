"""Observes and replaces operations while a network runs, be they modules, functions or tensor methods.

Hooks only see modules; a functional ReLU or a `+` between two branches escapes them. `torch.overrides` sees
every call, is undone by leaving the `with` block, and leaves the network untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Replacement = Callable[..., Any]  # called with the original's own arguments

ACTIVATIONS = (  # element-wise ones, by name
    *("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "hardswish", "hardsigmoid"),
    *("hardtanh", "softplus", "sigmoid", "tanh", "logsigmoid", "softsign", "hardshrink", "softshrink", "tanhshrink"),
    *("threshold", "prelu", "rrelu", "clamp", "clip", "clamp_min"),
)


class Spelling(NamedTuple):
    """One of the forms in which torch offers an operation."""

    spelt: Any  # the function or tensor method
    plain: Any  # the same, not in place
    inplace: bool


def spellings(name: str) -> Iterator[Spelling]:
    """All forms of the operation of that name: function, tensor method, in place."""
    for home in (F, torch, Tensor):
        plain = getattr(home, name, None)
        if plain is not None:
            yield Spelling(plain, plain, False)
            if (inplace := getattr(home, f"{name}_", None)) is not None:
                yield Spelling(inplace, plain, True)


class Intercept(TorchFunctionMode):  # type: ignore[misc]
    """Runs a replacement instead of an operation; inside it, operations are the ordinary ones again."""

    def __init__(self, replacements: Mapping[Any, Replacement]) -> None:
        super().__init__()
        self.replacements = replacements

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.replacements.get(func, func)(*args, **(kwargs or {}))


@contextmanager
def forward_only(network: nn.Module, replacements: Mapping[Any, Replacement]) -> Iterator[None]:
    """Replaces operations while the network's forward runs, but not while other hooks compute gradients."""
    modes: list[Intercept] = []

    def enter(*_: Any) -> None:
        modes.append(Intercept(replacements))
        modes[-1].__enter__()  # type: ignore[no-untyped-call]

    def leave(*_: Any) -> None:
        if modes:
            modes.pop().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    before = network.register_forward_pre_hook(enter)
    after = network.register_forward_hook(leave, always_call=True)
    try:
        yield
    finally:
        before.remove()
        after.remove()
        while modes:
            leave()
