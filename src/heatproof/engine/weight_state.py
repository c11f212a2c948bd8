"""Detects changes of a network: layers, weights, hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from operator import is_
from typing import Any

import torch
from torch import nn

from heatproof import network_state

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Watch:
    """A snapshot of a network: layers and attributes by identity, weights and buffers by checksum."""

    def __init__(self, network: nn.Module) -> None:
        owners = [(m.__dict__, m._modules, m._parameters, m._buffers) for m in network.modules()]
        self.tables: list[dict[str, Any]] = list(chain.from_iterable(owners))
        self.contents = self._contents()
        self.hooks = [table[name] for table, *_ in owners for name in HOOKS]
        self.tensors = [t for owner in owners for held in owner[2:] for t in held.values() if t is not None]
        self.checksum = network_state.checksum(self.tensors)

    def holds(self) -> bool:
        """Whether nothing has changed since the snapshot."""
        now = self._contents()
        same = len(now) == len(self.contents) and all(map(is_, now, self.contents))
        return same and torch.equal(network_state.checksum(self.tensors), self.checksum)

    def hooked(self) -> bool:
        """Whether hooks are set on a layer of the network, or globally on all layers."""
        return any(self.hooks) or bool(nn.modules.module._has_any_global_hook())

    def _contents(self) -> list[object]:
        return list(chain.from_iterable(map(dict.values, self.tables)))


@contextmanager
def without_hooks(network: nn.Module) -> Iterator[None]:
    """A context without the network's hooks, which must not take a measurement for real work."""
    stored = [(module, name, getattr(module, name)) for module in network.modules() for name in HOOKS]
    for module, name, hooks in stored:
        setattr(module, name, type(hooks)())
    try:
        yield
    finally:
        for module, name, hooks in stored:
            setattr(module, name, hooks)
