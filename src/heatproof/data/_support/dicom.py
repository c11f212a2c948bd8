"""DICOM files: stored values to physical units, to a window of them, to greys.

The order is the standard's: rescaling to physical units (Hounsfield), then the window, then the inversion of
MONOCHROME1. No field of a header is kept: they name patients.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heatproof.data._support.pictures import MOST_PIXELS, Levels, check_regular
from heatproof.errors import BadInput, Missing

SUFFIXES = frozenset((".dcm", ".dicom"))
DEFLATED = "1.2.840.10008.1.2.1.99"  # the transfer syntax that packs everything
Floats = npt.NDArray[np.float64]


def read(path: Path, levels: Levels | None, frame: int | None) -> npt.NDArray[np.float32]:
    """(C, H, W) in [0, 1]: one channel, or three of a picture in colour.

    `levels` are black and white in physical units; without them the file's own first window counts, or its table, or
    else the range of its stored values.
    """
    try:
        import pydicom
        from pydicom import pixels
    except ImportError as error:
        raise Missing.package("pydicom", "medical", "Reading DICOM files") from error
    check_regular(path)
    if pydicom.filereader.read_file_meta_info(path).get("TransferSyntaxUID") == DEFLATED:
        raise BadInput("its header is deflated, and may unpack to any size: store it as Explicit VR Little Endian")
    data = pydicom.dcmread(path)
    if "PixelData" not in data:
        raise BadInput("it holds no pixels: take it out of the folder")
    if int(data.Rows) * int(data.Columns) > MOST_PIXELS:
        raise BadInput(f"{data.Columns}x{data.Rows} pixels, more than {MOST_PIXELS} in all: scale it down")
    frames = int(data.get("NumberOfFrames", 1) or 1)
    if frame is not None and frame >= frames:
        raise BadInput(f"page must be below {frames}, the number of its frames, got {frame}")
    stored = np.asarray(pixels.pixel_array(data, index=frame or 0))
    kind = str(data.PhotometricInterpretation)
    if kind == "PALETTE COLOR":
        stored = np.asarray(pixels.apply_color_lut(stored, data))
    if stored.ndim == 3:
        most = 2 ** (8 * stored.dtype.itemsize) - 1
        return np.ascontiguousarray(stored.transpose(2, 0, 1).astype(np.float32) / most)
    values = np.asarray(pixels.apply_modality_lut(stored, data), dtype=np.float64)
    shown = scaled(values, levels) if levels is not None else _by_file(values, stored, data)
    shown = 1 - shown if kind == "MONOCHROME1" else shown
    padding = data.get("PixelPaddingValue")
    if padding is not None:
        shown = np.where(stored == int(padding), 0.0, shown)  # outside of the picture is black, however air is shown
    return shown[None].astype(np.float32)


def scaled(values: Floats, levels: Levels) -> Floats:
    """0 at the first level, 1 at the second; what lies beyond is cut, as by any window."""
    return np.clip((values - levels[0]) / (levels[1] - levels[0]), 0.0, 1.0)


def window(values: Floats, centre: float, width: float, function: str = "LINEAR") -> Floats:
    """A window as the standard defines it (PS3.3 C.11.2.1.2), in [0, 1]."""
    if function == "SIGMOID":
        return np.asarray(1 / (1 + np.exp(-4 * (values - centre) / width)))
    if function == "LINEAR_EXACT":
        return np.clip((values - centre) / width + 0.5, 0.0, 1.0)
    if width <= 1:
        return (values > centre - 0.5).astype(np.float64)
    return np.clip((values - (centre - 0.5)) / (width - 1) + 0.5, 0.0, 1.0)


def _by_file(values: Floats, stored: npt.NDArray[Any], data: Any) -> Floats:
    """As the file itself wants to be shown: its first window, else its table, else all that it can store."""
    from pydicom import pixels

    if "WindowCenter" in data and "WindowWidth" in data and data.WindowCenter is not None and data.WindowWidth:
        centre, width = _first(data.WindowCenter), _first(data.WindowWidth)
        return window(values, centre, width, str(data.get("VOILUTFunction", "LINEAR") or "LINEAR"))
    if data.get("VOILUTSequence"):
        bits = int(data.VOILUTSequence[0].LUTDescriptor[2])
        return np.asarray(pixels.apply_voi_lut(values.astype(stored.dtype), data, prefer_lut=True)) / (2.0**bits - 1)
    bits, signed = int(data.get("BitsStored", 16)), int(data.get("PixelRepresentation", 0)) == 1
    ends = np.array([[-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] if signed else [0, 2**bits - 1]])
    low, high = np.sort(np.asarray(pixels.apply_modality_lut(ends, data), dtype=np.float64).ravel())
    return scaled(values, (float(low), float(high)))


def _first(value: Any) -> float:
    return float(value[0] if hasattr(value, "__len__") and not isinstance(value, str) else value)
