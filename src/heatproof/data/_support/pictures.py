"""Reads one picture file of any kind and cuts it to the model's input.

Grey, palette, CMYK, 16-bit and transparent pictures become RGB; the orientation in EXIF is applied. What
cannot be read whole is refused with the reason: half a picture would give half a heatmap.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import ExifTags, Image, ImageOps
from torch import Tensor, nn

from heatproof.errors import BadInput, OutOfMemory
from heatproof.registry import part
from heatproof.types import Model, View

SUFFIXES = frozenset(  # of what is read; volumes may also end in .nii.gz
    (".dcm", ".dicom", ".nii", ".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
)
MOST_PIXELS = 2**26  # a small file may unpack to gigabytes; cameras and slides beyond it are scaled down first
SMALLEST_SIDE = 8  # pixels; below it a picture is an icon or an accident
BACKDROP = (
    255,
    255,
    255,
)  # what transparent pixels are laid on: most such pictures were made for white pages
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}

part("view")(View)

Levels = tuple[float, float]  # the grey values that are black and white in a picture of more than 8 bits
Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels of the picture


def open_picture(path: Path, page: int = 0) -> Image.Image:
    """The picture as stored (this frame or page), upright and wholly decoded, or `BadInput` with the reason."""
    try:
        check_regular(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of defects it can handle and raises on others
            with Image.open(path) as picture:
                check_pixels(picture)
                if page:
                    pages = getattr(picture, "n_frames", 1)
                    if page >= pages:
                        raise BadInput(f"page must be below {pages}, the number of its pages, got {page}")
                    picture.seek(page)
                picture.load()
                return _upright(picture)
    except BadInput:
        raise
    except MemoryError as error:  # the picture itself may be sound
        raise OutOfMemory.during(f"while {path} was read") from error
    except Exception as error:  # decoders fail on broken files in many ways (OSError, SyntaxError, struct.error, …)
        raise BadInput(f"not a readable picture ({type(error).__name__}: {str(error)[:120]})") from error


def is_picture(path: Path) -> bool:
    """Whether a file of this name is read as a picture."""
    return path.suffix.lower() in SUFFIXES or path.name.lower().endswith(".nii.gz")


def check_pixels(picture: Image.Image) -> None:
    """Raises `BadInput` for a picture that unpacks to too much memory; checks the header without decoding."""
    if picture.width * picture.height > MOST_PIXELS:
        raise BadInput(f"{picture.width}x{picture.height} pixels, more than {MOST_PIXELS} in all: scale it down")


def check_regular(path: Path) -> None:
    """`BadInput` unless the path leads to a file: a pipe would block, a device never end."""
    if path.is_file():
        return
    if path.is_symlink() and not path.exists():
        raise BadInput(f"{path} is a link that leads nowhere: remove it, or put the picture there")
    if path.exists() and not path.is_dir():
        raise BadInput(f"{path} is a pipe, a device or a socket, not a file: remove it")
    raise BadInput(f"there is no file {path}")


def takes_grey(model: Model) -> bool:
    """Whether the model looks at one channel: judged by its first convolution."""
    first = next((module for module in model.network.modules() if isinstance(module, nn.Conv2d)), None)
    return len(model.mean) == 1 and first is not None and first.in_channels == 1


def read_picture(path: Path, grey: bool = False, levels: Levels | None = None) -> Image.Image:
    """The picture as 8-bit RGB, or one channel of its brightness, upright, or `BadInput` with the reason.

    `levels` are the values that are black and white in pictures of more than 8 bits, where it is not the whole range.
    """
    if levels is not None and deep_colour(path):
        raise BadInput(
            "16 bits per colour are read over their whole range, and levels are for grey pictures only: scale the "
            "values to 0 … 65535 and leave levels out, or save it in grey"
        )
    picture = to_rgb(open_picture(path), levels)
    if grey:
        picture = picture.convert("L")
    if min(picture.size) < SMALLEST_SIDE:
        raise BadInput(f"{picture.width}x{picture.height} pixels, fewer than {SMALLEST_SIDE} on a side")
    return picture


def _upright(picture: Image.Image) -> Image.Image:
    with suppress(Exception):  # broken EXIF: no viewer would turn the picture either
        ImageOps.exif_transpose(picture, in_place=True)  # a copy would double the memory of large pictures
    return picture


def header(path: Path) -> tuple[tuple[int, int], int]:
    """(width, height) of the pixels as stored, and their EXIF orientation, 1 … 8: all that is known without decoding.

    1 (as stored) if the file cannot be read: `open_picture` gives the reason.
    """
    try:
        check_regular(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as picture:
                if (
                    picture.format == "PNG" and "exif" not in picture.info
                ):  # Pillow would decode all of it to look for EXIF at the end
                    return picture.size, 1
                found = picture.getexif().get(ExifTags.Base.Orientation, 1)
                return picture.size, found if found in range(2, 9) else 1
    except Exception:  # as in `open_picture`
        return (0, 0), 1


def is_deep(path: Path) -> bool:
    """Whether a picture holds more than 8 bits per channel, by its header; not asked of kinds that never do."""
    try:
        if path.suffix.lower() not in (".png", ".tif", ".tiff", ".pgm", ".ppm") or not path.is_file():
            return False  # also a pipe, which would never end
        state = path.stat()
        return _is_deep(path, state.st_mtime_ns, state.st_size)
    except (OSError, ValueError):  # its digest says that it cannot be read
        return False


@lru_cache(maxsize=200_000)
def _is_deep(path: Path, *_: int) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as picture:
                return picture.mode.startswith(("I", "F")) or any("16" in str(tile.args) for tile in picture.tile)
    except Exception:  # also of kinds that Pillow does not read: what does has its own rules
        return False


def deep_colour(path: Path) -> bool:
    """Whether a file holds 16 bits per colour, of which Pillow reads the upper 8."""
    check_regular(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as picture:
                return picture.mode.startswith("RGB") and any("16" in str(tile.args) for tile in picture.tile)
    except Exception:  # as in `open_picture`, which gives the reason
        return False


def to_rgb(picture: Image.Image, levels: Levels | None = None) -> Image.Image:
    """8-bit RGB from any mode Pillow reads."""
    if picture.mode == "RGB" and "transparency" not in picture.info:
        return picture
    if picture.mode.startswith(("I", "F")):
        return deep_grey(picture, levels).convert("RGB")
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        ground = Image.new("RGBA", picture.size, (*BACKDROP, 255))
        return Image.alpha_composite(ground, picture).convert("RGB")
    return picture.convert("RGB")


def deep_grey(picture: Image.Image, levels: Levels | None = None) -> Image.Image:
    """8-bit grey from 16-bit integers (full scale 65535) or floats in [0, 1], or from the levels that are given:
    Pillow's own conversion clips them."""
    scaled = unit_range(np.asarray(picture), levels, 1.0 if picture.mode == "F" else 65535.0)
    return Image.fromarray(np.round(scaled * 255.0).astype(np.uint8))


def unit_range(values: npt.NDArray[Any], levels: Levels | None, white: float) -> npt.NDArray[np.float32]:
    """Values of more than 8 bits in [0, 1]: 0 is black and `white` white, unless `levels` say otherwise."""
    if levels is None and not white:
        raise BadInput(
            f"values of type {values.dtype} have no usual black and white, and lie in [{values.min():g}, "
            f"{values.max():g}]: set the data set's levels (or --value-range), as in levels=[0, 4095]"
        )
    values = values.astype(np.float64)
    black, white = levels or (0.0, white)
    low, high = (float(values.min()), float(values.max())) if values.size else (black, black)
    if not (low >= black and high <= white):
        mend = "set" if levels else "save it as 8 or 16 bits, or set"
        raise BadInput(
            f"grey values must lie in [{black:g}, {white:g}], got [{low:g}, {high:g}]: {mend} the data set's levels to "
            "what is black and white in it, as in levels=[0, 4095]"
        )
    return ((values - black) / (white - black)).astype(np.float32)


def cut(width: int, height: int, view: View) -> Box:
    """The part of a picture of this size that the view shows."""
    if view.resize is None:
        return 0.0, 0.0, float(width), float(height)
    tall, broad = view.sides
    if view.resize < max(view.sides):
        raise BadInput(f"a view must resize to at least its size, got resize {view.resize} and size {view.size}")
    # As in torchvision and timm: sides of the resized picture and the offset of the crop are whole pixels.
    short, long = view.resize, int(view.resize * max(width, height) / min(width, height))
    wide, high = (long, short) if width > height else (short, long)
    left, top = round((wide - broad) / 2), round((high - tall) / 2)
    across, down = width / wide, height / high
    right, bottom = (left + broad) * across, (top + tall) * down
    return left * across, top * down, min(right, float(width)), min(bottom, float(height))


def apply_view(picture: Image.Image, view: View | None) -> Tensor:
    """An RGB picture as (3, H, W), a grey one as (1, H, W), float32 in [0, 1]; without a view at its own size."""
    if view is not None:
        # Only the visible part is resized: a long, thin picture would otherwise need a gigabyte for its margins.
        box = cut(picture.width, picture.height, view)
        picture = picture.resize(view.sides[::-1], FILTERS[view.interpolation], box=box)
    values = np.array(picture, dtype=np.float32)
    return torch.from_numpy(values.reshape(*values.shape[:2], -1)).permute(2, 0, 1).contiguous() / 255.0
