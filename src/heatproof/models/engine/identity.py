"""Which network is this, and is it still the one that was looked at?"""

from __future__ import annotations

import ctypes
import hashlib
import types
from itertools import chain
from operator import attrgetter, is_
from typing import NamedTuple

import torch
from torch import Tensor, nn

from heatproof import network_state

SIMPLE = frozenset((bool, int, float, str))
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Pulse(NamedTuple):
    """A quick look at a network: changes when its weights or layers do."""

    state: int
    hooked: bool  # somebody listens to or changes what passes through its layers


def pulse(network: nn.Module) -> Pulse:
    """Cheap enough to take before every call; sees weights replaced, changed in place or drawn anew."""
    seen: list[object] = []
    hooked: bool = bool(nn.modules.module._has_any_global_hook())
    waiting, met = [network], {id(network)}  # by hand: `modules()` takes several times as long
    while waiting:
        module = waiting.pop()
        for below in module._modules.values():
            if below is not None and id(below) not in met:
                met.add(id(below))
                waiting.append(below)
        if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks:
            hooked = True
        for tensor in (*module._parameters.values(), *module._buffers.values()):
            if tensor is None or tensor.layout is not torch.strided:
                continue
            address = tensor.data_ptr()
            seen.append(address)
            seen.append(0 if tensor.is_inference() else tensor._version)
            if address and tensor.is_cpu:
                # Writes through `.data` leave no trace but the numbers: one is read where it lies.
                seen.append(ctypes.string_at(address, tensor.element_size()))
        seen += [value for value in module.__dict__.values() if value.__class__ in SIMPLE]
    return Pulse(hash(tuple(seen)), hooked)


class Glance:
    """A network as it lay in memory once: says, several times as fast as a second pulse, that nothing has moved.

    Everything is compared by identity in a few calls; whoever gets "no" takes the pulse.
    """

    def __init__(self, network: nn.Module) -> None:
        modules = list(network.modules())
        owned = [owned for module in modules for owned in (module._parameters, module._buffers)]
        present = [tensor for held in owned for tensor in held.values() if tensor is not None]
        self.tensors = [tensor for tensor in present if tensor.layout is torch.strided and not tensor.is_inference()]
        self.complete = len(self.tensors) == len(present)  # of others nobody can tell whether they were changed
        self.dictionaries = [module.__dict__ for module in modules] + [module._modules for module in modules] + owned
        self.contents = list(chain.from_iterable(map(dict.values, self.dictionaries)))
        self.hooks = [getattr(module, name) for module in modules for name in HOOKS]
        self.addresses = list(map(Tensor.data_ptr, self.tensors))
        self.versions = list(map(_version, self.tensors))
        places = [(tensor, address) for tensor, address in zip(self.tensors, self.addresses, strict=True) if address]
        self.cells = [(ctypes.c_char * t.element_size()).from_address(at) for t, at in places if t.is_cpu]
        self.firsts = list(map(_raw, self.cells))

    def holds(self) -> bool:
        """Whether the network is unchanged and nobody listens to its layers."""
        contents = list(chain.from_iterable(map(dict.values, self.dictionaries)))
        return (
            self.complete
            and len(contents) == len(self.contents)
            and all(map(is_, contents, self.contents))
            and not any(self.hooks)
            and not nn.modules.module._has_any_global_hook()
            and list(map(Tensor.data_ptr, self.tensors)) == self.addresses
            and list(map(_version, self.tensors)) == self.versions
            and list(map(_raw, self.cells)) == self.firsts  # last: what lies elsewhere now must not be read
        )


_version, _raw = attrgetter("_version"), attrgetter("raw")


def architecture(network: nn.Module) -> str:
    """A hash of layers, shapes and code, without the weights: networks that cost the same."""
    digest = hashlib.sha256(repr(network).encode())
    for kind in sorted({type(module) for module in network.modules()}, key=lambda k: (k.__module__, k.__qualname__)):
        digest.update(f"{kind.__module__}.{kind.__qualname__}".encode())
        if not kind.__module__.startswith("torch.nn"):  # torch's own change with its version
            _code(digest, getattr(kind.forward, "__code__", None))
    for name, tensor in sorted(network.state_dict().items()):
        if isinstance(tensor, Tensor):
            digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
    return digest.hexdigest()[:16]


def weights(network: nn.Module) -> str:
    """A hash of everything the answers depend on, as it is now: what an exported network is filed under."""
    digest = hashlib.sha256(architecture(network).encode())
    for name, tensor in network_state.tensors(network):
        digest.update(name.encode())
        digest.update(network_state.tensor_bytes(tensor))
    for text in network_state.settings(network):
        digest.update(text.encode("utf-8", "backslashreplace") + b"\x1e")
    return digest.hexdigest()[:24]


def _code(digest: hashlib._Hash, code: types.CodeType | None) -> None:
    if code is None:
        return
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _code(digest, constant)
        elif not isinstance(constant, frozenset):  # sets print in any order
            digest.update(repr(constant).encode())
