"""Arrays in `.npy` and `.npz` files, read with a size limit: a file of 2 MB can unpack to 2 GB."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from heatproof.errors import BadInput

LARGEST = 2**28  # bytes of what is read at once; a map of a million pixels has 8 MB


def of_file(path: Path) -> NDArray[Any]:
    """The array of an `.npy` file."""
    with path.open("rb") as stream:
        return _read(stream, str(path), None)


def of_archive(archive: zipfile.ZipFile, name: str, row: int | None = None) -> NDArray[Any]:
    """An array of an `.npz` archive, or one row of it without loading the other rows."""
    member = name if name in archive.namelist() else f"{name}.npy"
    with archive.open(member) as stream:
        return _read(stream, f"{name} in {archive.filename}", row)


def _read(stream: IO[bytes], what: str, row: int | None) -> NDArray[Any]:
    shape, by_columns, dtype = _header(stream)
    if dtype.hasobject:
        raise ValueError("objects are not read, since that could run code")
    if row is not None and not by_columns:
        if not shape or not 0 <= row < shape[0]:
            raise ValueError(f"there is no row {row} in an array of shape {shape}")
        shape = shape[1:]
    size = math.prod(shape) * dtype.itemsize
    if size > LARGEST:
        raise BadInput(
            f"{what} unpacks to {size / 2**20:,.0f} MB, shape {shape}, and at most {LARGEST / 2**20:.0f} MB are read: "
            "store one map per image, of the picture's size"
        )
    if row is not None and not by_columns:
        stream.seek(row * size, 1)
    content = bytearray(stream.read(size))
    if len(content) != size:
        raise ValueError(f"it ends after {len(content)} of {size} bytes")
    found = np.frombuffer(content, dtype) if size else np.zeros(0, dtype)
    found = found.reshape(shape, order="F" if by_columns else "C")
    return found[row] if row is not None and by_columns else found


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format is not read")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(stream)
    if any(side < 0 for side in shape):
        raise ValueError(f"an array cannot have the shape {shape}")
    return shape, by_columns, dtype
