"""Reading the region that belongs to a picture from a mask file: white where the answer is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from heatproof.data._support.pictures import Box, cut, deep_grey, header, open_picture
from heatproof.errors import BadInput
from heatproof.types import View


def read_region(path: Path, picture_size: tuple[int, int], view: View | None) -> Tensor:
    """The (H, W) bool region of a picture of this (width, height), cut as the view cuts the picture.

    Binarised above half of full scale first, resized by nearest neighbour after.
    """
    return cut_region(read_mask(path, picture_size), picture_size, view)


def read_mask(path: Path, picture_size: tuple[int, int]) -> Image.Image:
    """The whole mask of a picture of this (width, height), 255 inside and 0 outside."""
    binary = binarise(open_picture(path))
    check_same_picture(binary.size, picture_size)
    return binary


def share(binary: Image.Image) -> float:
    """How much of the picture the region covers, at the mask's own resolution."""
    return float((np.asarray(binary) > 0).mean())


def cut_region(binary: Image.Image, picture_size: tuple[int, int], view: View | None) -> Tensor:
    """The part of a mask that the view shows, at the view's size."""
    size = picture_size if view is None else view.sides[::-1]
    box: Box = (0.0, 0.0, float(binary.width), float(binary.height))
    if view is not None:
        across, down = binary.width / picture_size[0], binary.height / picture_size[1]
        left, top, right, bottom = cut(*picture_size, view)
        box = (left * across, top * down, min(right * across, box[2]), min(bottom * down, box[3]))
    shown = binary.resize(size, Image.Resampling.NEAREST, box=box)
    return torch.from_numpy(np.array(shown) > 0)


def uncut(region: Image.Image, view: View | None) -> Tensor:
    """The part of a region that the view shows, in its own frame: to whole pixels, and not resized."""
    if view is not None:
        left, top, right, bottom = (round(side) for side in cut(region.width, region.height, view))
        region = region.crop((left, top, right, bottom))
    return torch.from_numpy(np.array(region) > 0)


def binarise(mask: Image.Image) -> Image.Image:
    """255 above half of full scale, 0 below; transparent is black."""
    if mask.mode.startswith(("I", "F")):
        grey = deep_grey(mask)
    elif mask.has_transparency_data:
        mask = mask.convert("RGBA")
        grey = Image.alpha_composite(Image.new("RGBA", mask.size, (0, 0, 0, 255)), mask).convert("L")
    else:
        grey = mask.convert("L")
    values = np.asarray(grey)
    inside = values > 127
    if values.size and values.max() > 0 and not inside.any():
        # Class indices, or a mask saved as 0 and 1, would otherwise pass for an empty region.
        raise BadInput(
            f"the mask's brightest pixel is {int(values.max())} of 255, so nothing is above half: save the "
            f"region as 255"
        )
    return Image.fromarray(np.where(inside, np.uint8(255), np.uint8(0)))


def fits(mask: tuple[int, int], picture: tuple[int, int]) -> bool:
    """Whether the sizes agree, or their aspect ratios do to the nearest pixel."""
    wide, high = mask
    # The mask's width (or height) must be what shrinking the picture to its other side would give, with any rounding.
    return abs(picture[0] * high / picture[1] - wide) < 1 or abs(picture[1] * wide / picture[0] - high) < 1


def check_same_picture(mask: tuple[int, int], picture: tuple[int, int]) -> None:
    """`BadInput` unless the mask fits the picture as it is shown."""
    if fits(mask, picture):
        return
    sizes = f"the mask is {mask[0]}x{mask[1]} pixels and the picture {picture[0]}x{picture[1]}"
    if fits(mask, (picture[1], picture[0])):
        # The mask alone does not show which way it is turned.
        raise BadInput(
            f"{sizes}, a quarter turn apart: pictures are shown as their EXIF orientation says; draw the mask on "
            "the picture as it is shown, or save the picture without that orientation"
        )
    raise BadInput(f"{sizes}: they must have the same size or at least the same aspect ratio")


def undecided(picture: Path, mask: Path) -> bool:
    """Whether a mask fits a turned or mirrored picture both as it is shown and as it is stored, so that its size does
    not decide.

    A mask with its own EXIF orientation is turned along with its picture.
    """
    (width, height), turn = header(picture)
    if turn == 1:
        return False
    size, own = header(mask)
    if own != 1 or 0 in size:
        return False
    return turn < 5 or (fits(size, (width, height)) and fits(size, (height, width)))


def warn_of_undecided(pairs: Sequence[tuple[Path, object]]) -> None:
    """Warns once, naming the first, that masks of turned pictures are applied to the pictures as shown."""
    names = [picture.name for picture, mask in pairs if isinstance(mask, Path) and undecided(picture, mask)]
    if names:
        others = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        warnings.warn(
            f"{names[0]}{others} is shown turned or mirrored, as its EXIF orientation says, and its mask is taken to "
            "be drawn on it as it is shown: if it was drawn on the pixels as they are stored, turn it the same way, "
            "or save the picture without that orientation",
            stacklevel=2,
        )
