"""The state that a network's answers depend on: weights, buffers, and plain attributes of user-defined layers.

A user-defined layer may keep anything in plain attributes: a temperature read from a file, a table of thresholds.
`state_dict` does not hold them, but the answers depend on them.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import types
from collections.abc import Hashable, Iterable, Iterator, Mapping
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
    """All named tensors of the state dict, then the non-persistent buffers."""
    for name, tensor in sorted(network.state_dict().items()):
        if isinstance(tensor, Tensor):
            yield name, tensor
    for path, module in sorted(network.named_modules(), key=lambda pair: pair[0]):
        for name in sorted(module._non_persistent_buffers_set):
            buffer = module._buffers.get(name)
            if buffer is not None:
                yield f"~{path}.{name}", buffer


def tensor_bytes(tensor: Tensor) -> bytes:
    """A tensor's numbers as raw bytes."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def architecture(network: nn.Module) -> str:
    """A hash of layers, shapes and code, without the weights: networks with equal hashes cost the same."""
    digest = hashlib.sha256(repr(network).encode())
    for kind in sorted({type(module) for module in network.modules()}, key=lambda k: (k.__module__, k.__qualname__)):
        digest.update(f"{kind.__module__}.{kind.__qualname__}".encode())
        if not kind.__module__.startswith("torch.nn"):  # torch's layers change with its version
            _code(digest, getattr(kind.forward, "__code__", None))
    for name, tensor in sorted(network.state_dict().items()):
        if isinstance(tensor, Tensor):
            digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
    return digest.hexdigest()[:16]


def weights(network: nn.Module) -> str:
    """A hash of everything the answers depend on: the key of an exported network."""
    digest = hashlib.sha256(architecture(network).encode())
    for name, tensor in tensors(network):
        digest.update(name.encode())
        digest.update(tensor_bytes(tensor))
    for text in settings(network):
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
        elif not isinstance(constant, frozenset):  # sets have no fixed order
            digest.update(repr(constant).encode())


def settings(network: nn.Module) -> Iterator[str]:
    """Plain attributes of user-defined layers, as text; empty if all layers are a library's."""
    for path, module in network.named_modules():
        if source_hash.is_own(type(module)):
            for name, value in _attributes(module):
                yield f"{path}.{name}={_text(value, ())}"


def token(network: nn.Module, every: bool = False) -> Hashable:
    """A cheap value that changes when weights change in any way, or a layer or a plain setting is replaced.

    State that a forward pass may leave behind (tensors in attributes, and non-persistent buffers unless `every` is set)
    is ignored.
    """
    seen: list[Any] = []
    held: list[Tensor] = []
    for module in network.modules():
        seen += [type(module), *((name, value) for name, value in _attributes(module) if _is_plain(value))]
        buffers = [buffer for name, buffer in module._buffers.items() if every or is_stored(module, name)]
        held += [tensor for tensor in (*module._parameters.values(), *buffers) if tensor is not None]
    return tuple(seen), tensor_bytes(checksum(held))


def _is_plain(value: Any) -> bool:
    return isinstance(value, SCALARS) or (isinstance(value, tuple) and all(isinstance(v, SCALARS) for v in value))


def is_stored(module: nn.Module, buffer: str) -> bool:
    return buffer not in module._non_persistent_buffers_set


def checksum(held: Iterable[Tensor]) -> Tensor:
    """Numbers that change when any number in these tensors changes by more than float noise; about one per row.

    They are products of the rows with fixed random numbers, ten times faster than a hash. They catch what torch's
    version counters miss: writes through `.data`.
    """
    with torch._C.DisableTorchFunction(), torch.no_grad():
        parts: list[Tensor] = [torch.zeros(0)]
        for tensor in held:
            values = tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()
            values = torch.view_as_real(values) if values.is_complex() else values
            if values.ndim > 1 and values.numel() and values.is_floating_point():
                rows = values.flatten(1)
                rows = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
                values = rows @ _weights(rows.shape[1], rows.dtype, rows.device)
            parts.append(values.flatten().to(parts[-1].device))
        return torch.cat(parts)


@functools.lru_cache(256)
def _weights(count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(0)).to(device, dtype)


def _attributes(module: nn.Module) -> list[tuple[str, Any]]:
    return sorted((name, value) for name, value in vars(module).items() if name not in _INTERNAL)


def _text(value: Any, above: tuple[int, ...]) -> str:
    """A text that differs when the value does, equal in every process; of other objects only the class."""
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
    if id(value) in above:  # a cycle
        return "…"
    held = (*above, id(value))
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Mapping):
        pairs = [f"{_text(name, held)}:{_text(item, held)}" for name, item in value.items()]
        return f"{kind}{{{','.join(pairs)}}}"
    if isinstance(value, tuple | list | set | frozenset):
        items = [_text(item, held) for item in value]
        return f"{kind}({','.join(sorted(items) if isinstance(value, set | frozenset) else items)})"
    if isinstance(value, nn.Module):  # a module that is not registered as a layer
        weights = [f"{name}={_text(tensor, held)}" for name, tensor in tensors(value)]
        return f"{value!r}{weights}{list(settings(value))}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return kind + _text({field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}, held)
    if isinstance(value, SimpleNamespace) or (source_hash.is_own(type(value)) and hasattr(value, "__dict__")):
        return kind + _text(vars(value), held)
    return kind
