"""What a network's answers depend on beside its layers: weights, buffers, and what user-defined layers hold.

A user's layer may keep anything in plain attributes: a temperature read from a file, a table of thresholds. They are
no part of the state that torch stores, and count all the same.
"""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
from collections.abc import Hashable, Iterator, Mapping
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heatproof.spec import source_hash

SCALARS = (type(None), bool, int, float, complex, str, bytes)
_INTERNAL = frozenset(vars(nn.Module()))


def tensors(network: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Everything in the stored state by name, then the buffers that are kept out of it."""
    for name, tensor in sorted(network.state_dict().items()):
        if isinstance(tensor, Tensor):
            yield name, tensor
    for path, module in sorted(network.named_modules(), key=lambda pair: pair[0]):
        for name in sorted(module._non_persistent_buffers_set):
            buffer = module._buffers.get(name)
            if buffer is not None:
                yield f"~{path}.{name}", buffer


def tensor_bytes(tensor: Tensor) -> bytes:
    """A tensor's numbers as they lie in memory."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def settings(network: nn.Module) -> Iterator[str]:
    """What user-defined layers hold in plain attributes, as text; nothing where all layers are a library's."""
    for path, module in network.named_modules():
        if source_hash.is_own(type(module)):
            for name, value in _attributes(module):
                yield f"{path}.{name}={_text(value, ())}"


def token(network: nn.Module) -> Hashable:
    """Changes, within a process, when weights are replaced or written to or a plain setting is set; cheap.

    What a forward pass may leave behind (buffers outside the state, tensors in attributes) is not looked at.
    """
    seen: list[Hashable] = []
    for module in network.modules():
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is None or name in module._non_persistent_buffers_set or tensor.layout is not torch.strided:
                continue
            address = tensor.data_ptr()
            seen += [address, None if tensor.is_inference() else tensor._version]
            if address and tensor.is_cpu:  # writes through `.data` leave no trace but the numbers
                seen.append(ctypes.string_at(address, tensor.element_size()))
        if source_hash.is_own(type(module)):
            seen += [pair for pair in _attributes(module) if isinstance(pair[1], SCALARS)]
    return tuple(seen)


def _attributes(module: nn.Module) -> list[tuple[str, Any]]:
    return sorted((name, value) for name, value in vars(module).items() if name not in _INTERNAL)


def _text(value: Any, above: tuple[int, ...]) -> str:
    """A text that differs where the value does, the same in every process; of strangers' objects the class alone."""
    if isinstance(value, Enum | torch.dtype | torch.device | np.dtype):
        return repr(value)
    if isinstance(value, SCALARS):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        if array.dtype != object:
            return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
        value = array.tolist()
    if isinstance(value, Tensor):
        return f"{value.dtype}{tuple(value.shape)}{hashlib.sha256(tensor_bytes(value)).hexdigest()}"
    if id(value) in above:  # it holds itself
        return "…"
    held = (*above, id(value))
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Mapping):
        pairs = [f"{_text(name, held)}:{_text(item, held)}" for name, item in value.items()]
        return f"{kind}{{{','.join(pairs)}}}"
    if isinstance(value, tuple | list | set | frozenset):
        items = [_text(item, held) for item in value]
        return f"{kind}({','.join(sorted(items) if isinstance(value, set | frozenset) else items)})"
    if isinstance(value, nn.Module):  # one that was not registered as a layer
        weights = [f"{name}={_text(tensor, held)}" for name, tensor in tensors(value)]
        return f"{value!r}{weights}{list(settings(value))}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return kind + _text({field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}, held)
    if isinstance(value, SimpleNamespace) or (source_hash.is_own(type(value)) and hasattr(value, "__dict__")):
        return kind + _text(vars(value), held)
    return kind
