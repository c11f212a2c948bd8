"""Masks made worse on purpose: smaller, larger, out of place, coarser."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate, max_pool2d

from heatproof.types import Keep

Change: TypeAlias = Literal["eroded", "dilated", "shifted", "coarse"]


def changed(regions: Keep, change: Change, pixels: int, dice: Iterable[torch.Generator]) -> Keep:
    """(B, H, W) masks after a change of so many pixels; directions of shifts are drawn per picture."""
    if change == "dilated":
        return dilated(regions, pixels)
    if change == "eroded":
        return ~dilated(~regions, pixels)  # beyond the edge of the picture a mask goes on
    if change == "coarse":
        return coarse(regions, 2 * pixels)
    angles = [2 * math.pi * float(torch.rand((), generator=one)) for one in dice]
    rows = [
        shifted(mask, round(pixels * math.sin(angle)), round(pixels * math.cos(angle)))
        for mask, angle in zip(regions, angles, strict=True)
    ]
    return torch.stack(rows) if rows else regions


def dilated(regions: Keep, pixels: int) -> Keep:
    """Every mask grown by so many pixels to all sides, within the picture."""
    grown: Tensor = max_pool2d(regions[:, None].float(), 2 * pixels + 1, 1, pixels)
    return grown[:, 0] > 0


def coarse(regions: Keep, cell: int) -> Keep:
    """Every mask as cells of so many pixels: in it where it covers half of the cell."""
    height, width = regions.shape[1:]
    shares: Tensor = avg_pool2d(regions[:, None].float(), cell, ceil_mode=True, count_include_pad=False)
    cells: Tensor = interpolate((shares >= 0.5).float(), scale_factor=cell, mode="nearest")
    return cells[:, 0, :height, :width] > 0


def shifted(mask: Tensor, down: int, right: int) -> Tensor:
    """One mask moved; what leaves the picture is lost."""
    height, width = mask.shape
    moved = torch.zeros_like(mask)
    to_rows, to_columns = slice(max(down, 0), height + min(down, 0)), slice(max(right, 0), width + min(right, 0))
    from_rows, from_columns = slice(max(-down, 0), height - max(down, 0)), slice(max(-right, 0), width - max(right, 0))
    moved[to_rows, to_columns] = mask[from_rows, from_columns]
    return moved
