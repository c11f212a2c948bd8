"""Reads weights from files without running code in them.

`.safetensors` files hold numbers only. Every other file is read by torch with `weights_only=True`, which
admits tensors and plain containers; a pickle that needs more could run any code and is refused unless the
caller trusts it.
"""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heatproof.errors import BadModel
from heatproof.storage import any_path

Weights = dict[str, Tensor]
_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
_WRAPPINGS = (
    "state_dict",
    "model_state_dict",
    "model",
)  # keys under which training scripts store the weights in a checkpoint


def read_weights(path: str | Path, trust_pickle: bool = False) -> Weights:
    """The named tensors in a file: a state dict, bare, inside a checkpoint, or (if trusted) of a pickled network."""
    path = any_path.expanded(path)
    if not any_path.is_file(path):
        raise BadModel(
            f"there is no weights file {path}, nor are these weights known by name: check the path, or take 'random'"
        )
    found = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path, trust_pickle)
    return _named_tensors(found, path)


@contextmanager
def weights_only() -> Iterator[None]:
    """A context in which torch.load reads weights only, whatever arguments a library passes to it."""
    before = os.environ.get(_ONLY)
    os.environ[_ONLY] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ONLY]
        else:
            os.environ[_ONLY] = before


def _read_safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:
        raise BadModel(f"{path} must be a safetensors file, got: {error}") from error


def _check_stored(path: Path) -> None:
    """`BadModel` for an archive with compressed members: torch writes none, and they could unpack to any size."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise BadModel(f"{path} is a compressed archive, which torch does not write: save the weights anew")


def _read_torch(path: Path, trust_pickle: bool) -> Any:
    try:
        _check_stored(path)
        return torch.load(path, map_location="cpu", weights_only=not trust_pickle)
    except BadModel:
        raise
    except pickle.UnpicklingError as error:
        reason = str(error).strip()
        if "weights_only" not in reason and "Unsupported" not in reason:
            raise BadModel(f"{path} must be a file of weights, got: {reason[:300]}") from error
        # torch's message fills a screen; what the pickle needs is in its middle.
        marked = reason.partition("WeightsUnpickler error:")[2].strip() or reason
        raise BadModel(
            f"{path} is a pickle that holds more than weights ({marked.splitlines()[0][:200]}), so reading "
            f"it could run "
            "any code: save its state_dict as safetensors, or, if you trust where it comes from, pass "
            "--trust-pickle "
            "(trust_pickle=True)"
        ) from error
    except Exception as error:
        raise BadModel(f"{path} must be a file of weights, got {type(error).__name__}: {str(error)[:300]}") from error


def _named_tensors(found: Any, path: Path) -> Weights:
    if isinstance(found, nn.Module):
        found = found.state_dict()
    if isinstance(found, Mapping):
        inner = next((found[name] for name in _WRAPPINGS if isinstance(found.get(name), Mapping | nn.Module)), None)
        if inner is not None:
            return _named_tensors(inner, path)
        tensors = {str(name): value for name, value in found.items() if isinstance(value, Tensor)}
        if tensors:
            parallel = all(name.startswith("module.") for name in tensors)  # as nn.DataParallel names them
            return {name.removeprefix("module.") if parallel else name: value for name, value in tensors.items()}
    raise BadModel(
        f"{path} must hold a state dict (names and tensors), got {type(found).__name__}: save network.state_dict()"
    )


def class_count(network: nn.Module, weights: Weights) -> int | None:
    """The number of classes of the weights, if they differ from the network in that alone.

    A network trained for other classes has the same tensors but for the number of rows in the last ones.
    """
    own = network.state_dict()
    unlike = [name for name in own if name in weights and own[name].shape != weights[name].shape]
    rows = {weights[name].shape[:1] for name in unlike}
    same_rest = all(own[name].shape[1:] == weights[name].shape[1:] for name in unlike)
    own_rows = {own[name].shape[:1] for name in unlike}
    if len(rows) == 1 and len(own_rows) == 1 and same_rest and rows != {torch.Size([])}:
        return int(next(iter(rows))[0])
    return None


def put_weights(network: nn.Module, weights: Weights, where: str) -> None:
    """Loads all weights into the network, or raises `BadModel` with the first names that do not fit."""
    own = network.state_dict()
    missing = [name for name in own if name not in weights and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in weights if name not in own]
    unlike = [
        f"{name} {tuple(weights[name].shape)} instead of {tuple(own[name].shape)}"
        for name in own
        if name in weights and own[name].shape != weights[name].shape
    ]
    problems = [
        f"{len(names)} {word} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"
        for word, names in (("missing", missing), ("unexpected", unexpected), ("of another shape", unlike))
        if names
    ]
    if problems:
        raise BadModel(f"{where} does not fit the network: {'; '.join(problems)}; is it for another architecture?")
    network.load_state_dict(weights, strict=False)
