"""BAM's `val_mask`: a NumPy object array, that is, a pickle. Read so that nothing in it can run.

A pickle may name any function to be called. Only the few names that rebuild a NumPy array are admitted; at the first
other name reading stops, before anything is called.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from heatproof.errors import BadInput

Mask = NDArray[np.bool_]

# The functions that NumPy 1 and 2 rebuild an array with.
_ADMITTED = {
    (module, name)
    for modules, name in (
        (("numpy.core.multiarray", "numpy._core.multiarray"), "_reconstruct"),
        (("numpy.core.numeric", "numpy._core.numeric"), "_frombuffer"),
        (("numpy",), "ndarray"),
        (("numpy",), "dtype"),
    )
    for module in modules
}
# Pickles of Python 2 arrays hold their bytes as text, re-encoded by this function.
_ENCODE = ("_codecs", "encode")


class _Masks(pickle.Unpickler):
    """An unpickler that knows NumPy arrays and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == _ENCODE:
            return lambda text, encoding="latin1": text.encode("latin1")
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no array needs")
        return super().find_class(module, name)


def read_masks(path: Path) -> list[Mask]:
    """The masks of a `val_mask` or `val_mask.npy`, (h, w) bool each, in order; or `BadInput`, with nothing run."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror})") from error
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = reader(stream)
        if dtype.hasobject:
            entries = _Masks(stream, encoding="latin1").load()
            listed = np.asarray(entries, dtype=object).ravel().tolist() if _ragged(entries) else list(entries)
        else:
            listed = list(npy.read_array(io.BytesIO(content), allow_pickle=False))
    except BadInput:
        raise
    except Exception as error:  # broken pickles fail in many ways; none may get past here
        raise BadInput(f"{path} must be a NumPy array of masks and is refused: {error}") from error
    if len(shape) < 1 or len(listed) != shape[0]:
        raise BadInput(f"{path} must hold {shape[0] if shape else 'a list of'} masks, got {len(listed)}")
    return [_checked(entry, place, path) for place, entry in enumerate(listed)]


def _ragged(entries: Any) -> bool:
    return isinstance(entries, np.ndarray) and entries.dtype == object and entries.ndim == 1


def _checked(entry: Any, place: int, path: Path) -> Mask:
    if not isinstance(entry, np.ndarray) or entry.ndim != 2 or entry.dtype.kind not in "bui" or not entry.size:
        got = f"{entry.dtype} of shape {entry.shape}" if isinstance(entry, np.ndarray) else type(entry).__name__
        raise BadInput(f"{path}: mask {place} must be a 2-D array of 0 and 1, got {got}")
    values = np.asarray(entry)
    if int(values.max()) > 1 or int(values.min()) < 0:
        raise BadInput(f"{path}: mask {place} must hold 0 and 1 only, got {int(values.min())} to {int(values.max())}")
    return values.astype(np.bool_)


def write_masks(path: Path, masks: list[Mask]) -> None:
    """`val_mask` as published: an object array of uint8 masks, in NumPy's own format, without an extension."""
    array = np.empty(len(masks), dtype=object)
    array[:] = [mask.astype(np.uint8) for mask in masks]
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=True)
