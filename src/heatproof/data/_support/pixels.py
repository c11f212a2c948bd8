"""Pictures of any depth and number of channels, as models take them: 8-bit pictures, or arrays that keep every bit.

A picture of more than 8 bits, or of channels other than grey and colour, is an array (C, H, W) of float32 in [0, 1]. It
is cut and scaled as 8-bit pictures are, without being rounded to 256 steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from heatproof.data._support import dicom, nifti, tiff
from heatproof.data._support.pictures import (
    FILTERS,
    SMALLEST_SIDE,
    Levels,
    apply_view,
    cut,
    deep_colour,
    open_picture,
    to_rgb,
    unit_range,
)
from heatproof.errors import BadInput, HeatproofError, OutOfMemory
from heatproof.types import View

T = TypeVar("T")
Array: TypeAlias = npt.NDArray[np.float32]  # (C, H, W) in [0, 1]
Pixels: TypeAlias = Image.Image | Array
Plane: TypeAlias = nifti.Plane

LUMA = (0.299, 0.587, 0.114)  # the weights of red, green and blue in brightness, as in 8-bit pictures


@dataclass(frozen=True)
class Reading:
    """How files are read: the fields that every data set of files has."""

    grey: bool = False  # in one channel
    levels: Levels | None = None  # the values of black and white
    page: int | None = None  # of a TIFF, a DICOM file or a volume; None: the first, of a volume the middle slice
    plane: Plane = "axial"  # of the slices of a volume

    def __post_init__(self) -> None:
        if self.page is not None and self.page < 0:
            raise BadInput(f"page must be a number from 0, the first, got {self.page}")

    @property
    def key(self) -> str:
        """What decides the pixels, for hashes; empty for the plain reading of pictures."""
        paged = f" page {self.page}" if self.page is not None else ""
        return f"{paged}{f' {self.plane}' if self.plane != 'axial' else ''}"


def read_pixels(path: Path, reading: Reading) -> Pixels:
    """The picture in grey or RGB, or with all its channels where it has others, or `BadInput` with the reason."""
    found = _read(path, reading)
    if isinstance(found, Image.Image):
        return found.convert("L") if reading.grey else found
    channels, height, width = found.shape
    if min(height, width) < SMALLEST_SIDE:
        raise BadInput(f"{width}x{height} pixels, fewer than {SMALLEST_SIDE} on a side")
    if channels == 3 and reading.grey:
        return np.tensordot(np.array(LUMA, np.float32), found, 1)[None].astype(np.float32)
    return found.repeat(3, 0) if channels == 1 and not reading.grey else found


def _read(path: Path, reading: Reading) -> Pixels:
    ending = path.suffix.lower()
    if ending in dicom.SUFFIXES:
        return _whole(path, lambda: dicom.read(path, reading.levels, reading.page))
    if nifti.is_volume(path):
        return _whole(path, lambda: nifti.read(path, reading.levels, reading.page, reading.plane))
    if (
        ending in tiff.SUFFIXES
        and (deep := _whole(path, lambda: tiff.read(path, reading.levels, reading.page))) is not None
    ):
        return deep
    if deep_colour(path):
        return _whole(path, lambda: _deep_colours(path, reading.levels))
    picture = open_picture(path, reading.page or 0)
    if picture.mode.startswith(("I", "F")):
        return unit_range(np.asarray(picture), reading.levels, 1.0 if picture.mode == "F" else 65535.0)[None]
    if min(picture.size) < SMALLEST_SIDE:
        raise BadInput(f"{picture.width}x{picture.height} pixels, fewer than {SMALLEST_SIDE} on a side")
    return to_rgb(picture)


def _whole(path: Path, read: Callable[[], T]) -> T:
    """What a decoder gives, or `BadInput` with the reason: decoders fail on broken files in many ways."""
    try:
        return read()
    except HeatproofError:
        raise
    except MemoryError as error:
        raise OutOfMemory.during(f"while {path} was read") from error
    except Exception as error:
        raise BadInput(f"not a readable picture ({type(error).__name__}: {str(error)[:120]})") from error


def _deep_colours(path: Path, levels: Levels | None) -> Array:
    """A PNG of 16 bits per colour, which Pillow reads in 8; its transparent pixels lie on white."""
    import cv2

    values = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if values is None or values.ndim != 3:
        raise BadInput("not a readable picture of 16 bits per colour: save it as TIFF, or in 8 bits")
    scaled = unit_range(values[..., 2::-1], levels, 65535.0).transpose(2, 0, 1)
    if values.shape[2] == 4:
        cover = values[..., 3].astype(np.float32) / 65535.0
        scaled = scaled * cover + (1 - cover)
    return np.ascontiguousarray(scaled)


def size_of(pixels: Pixels) -> tuple[int, int]:
    """Width and height."""
    return pixels.size if isinstance(pixels, Image.Image) else (pixels.shape[2], pixels.shape[1])


def as_input(pixels: Pixels, view: View | None) -> Tensor:
    """(C, H, W) float32 in [0, 1], cut as the view says; without one at its own size."""
    if isinstance(pixels, Image.Image):
        return apply_view(pixels, view)
    if view is None:
        return torch.from_numpy(np.ascontiguousarray(pixels, dtype=np.float32))
    box = cut(*size_of(pixels), view)
    resized = [
        np.asarray(
            Image.fromarray(np.ascontiguousarray(one)).resize(view.sides[::-1], FILTERS[view.interpolation], box=box)
        )
        for one in pixels
    ]
    return torch.from_numpy(np.stack(resized)).clamp_(0, 1)  # bicubic filters swing over
