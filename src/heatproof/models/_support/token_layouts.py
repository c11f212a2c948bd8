"""Layouts of a picture's places in a layer's output: (B, K, h, w), (B, h, w, K), or tokens in a row."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Literal

from torch import Tensor

from heatproof.errors import NotApplicable

Layout = Literal["channels_first", "channels_last", "tokens"]
Sides = Sequence[int]  # height and width

LEADING = 8  # class token, distillation, registers: more tokens before the patches mean another layout


def layout(shape: Sequence[int], shown: Sides) -> Layout | None:
    """The layout in a tensor of this shape of the places of a picture of these sides; None if it has none."""
    if len(shape) == 4:
        if _are_sides(shape[2], shape[3], shown):
            return "channels_first"
        return "channels_last" if _are_sides(shape[1], shape[2], shown) else None
    found = grid(shape[1], shown) if len(shape) == 3 else None
    return "tokens" if found and found[0] <= LEADING and found[1] * found[2] > 1 else None


def _are_sides(rows: int, columns: int, shown: Sides) -> bool:
    """Whether rows and columns may be those of the picture: strides shrink both, edges may be cut off."""
    height, width = shown
    if height > width:
        rows, columns, height, width = columns, rows, width, height
    # Strides shrink both sides and so their difference; cut-off edges make a wide picture relatively wider.
    near = 0 <= columns - rows <= width - height and (columns + 1) * height >= (rows - 1) * width
    return near and rows * columns > 1


def grid(tokens: int, shown: Sides) -> tuple[int, int, int] | None:
    """The number of tokens before the patches, and the patches' rows and columns.

    Patches are square, so rows : columns = height : width; the remaining tokens (class token, distillation, registers)
    come first.
    """
    height, width = shown
    for rows in range(isqrt(tokens * height // width) + 1, 0, -1):
        columns = rows * width // height
        if rows * width == columns * height and 0 < rows * columns <= tokens:
            return tokens - rows * columns, rows, columns
    return None


def as_pictures(values: Tensor, shown: Sides) -> Tensor:
    """A layer's output for pictures of these sides as (B, K, h, w), without the tokens before the patches."""
    if values.ndim == 3:
        first, rows, columns = patches(values.shape[1], shown)
        return values[:, first:].transpose(1, 2).reshape(len(values), -1, rows, columns)
    if values.ndim != 4:
        raise NotApplicable(
            "a map needs a layer of (batch, channels, height, width), (batch, height, width, channels) or tokens, got "
            f"{tuple(values.shape)}: name another layer"
        )
    return values.permute(0, 3, 1, 2) if layout(values.shape, shown) == "channels_last" else values


def patches(tokens: int, shown: Sides) -> tuple[int, int, int]:
    """The `grid`, or `NotApplicable`."""
    found = grid(tokens, shown)
    if found is None:
        raise NotApplicable(f"{tokens} tokens do not lay out as square patches of a {shown[0]}×{shown[1]} picture")
    return found
