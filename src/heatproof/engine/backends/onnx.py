"""The ONNX Runtime back-end, for forward passes: networks are exported once per weights and cached on disk."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.jit._trace import TracerWarning

from heatproof.engine.backends.eager import Runner
from heatproof.network_state import weights
from heatproof.storage import cache

NAMES: dict[str, Any] = {"input_names": ["images"], "output_names": ["logits"]}
KEPT = 16  # exported networks in the cache; the least recently used are deleted


@functools.cache
def installed() -> bool:
    return all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))


@functools.cache
def version() -> str:
    """ONNX Runtime's version, part of the cache key of a choice: another version is measured anew."""
    return importlib.metadata.version("onnxruntime") if installed() else "none"


def runner(network: nn.Module, example: Tensor, fresh: bool = False) -> Runner:
    """A runner from normalised images to logits, for any batch size; raises whatever export or loading raises.

    `fresh` exports anew even where the cache holds this network.
    """
    folder = cache.cache_directory() / "onnx"
    shape = "x".join(str(n) for n in example.shape[1:])
    path = folder / f"{weights(network)}-{shape}-torch{torch.__version__}.onnx"
    content = None if fresh else cache.kept(path)
    if content is None:
        content = cache.keep(path, _exported(network, example))
        for old in sorted(folder.glob("*.onnx"), key=lambda p: p.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    return _session(content)


def _exported(network: nn.Module, example: Tensor) -> bytes:
    """The network as ONNX: by the older exporter, which is much quicker; where it warns or fails, by the newer one."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), _quiet():
        file = Path(folder) / "network.onnx"
        warnings.simplefilter("ignore")
        try:
            warnings.simplefilter("error", TracerWarning)  # tracing may have frozen a value as a constant
            rows = {"images": {0: "batch"}, "logits": {0: "batch"}}
            torch.onnx.export(network, (example,), str(file), dynamo=False, dynamic_axes=rows, **NAMES)
        except Exception:
            file.unlink(missing_ok=True)
            warnings.simplefilter("ignore")
            batch = ({0: torch.export.Dim("batch", min=1, max=4096)},)
            inside: dict[str, Any] = {"external_data": False, "verbose": False, "dynamic_shapes": batch}
            torch.onnx.export(network, (example,), str(file), dynamo=True, **inside, **NAMES)
        return file.read_bytes()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """A context that silences the exporters: their messages are for people who export by hand."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        logging.disable(before)


def _session(content: bytes) -> Runner:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    # Threads that spin while waiting take the cores from torch and from the other processes of a run.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def run(normalised: Tensor) -> Tensor:
        (logits,) = session.run(["logits"], {"images": normalised.contiguous().numpy()})
        return torch.from_numpy(logits)

    return run
