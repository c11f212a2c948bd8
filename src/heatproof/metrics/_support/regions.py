"""The region a map is compared with, and notes on degenerate comparisons."""

from __future__ import annotations

import torch
from torch import Tensor

from heatproof.errors import BadShape, NotApplicable
from heatproof.types import Attribution, Keep, Maps

EMPTY, FULL = "the region is empty", "the region covers everything"
CONSTANT, NOT_FINITE = "the map is constant", "the map is not finite"


def regions_of(attribution: Attribution) -> Keep:
    """The regions of the batch, or `NotApplicable` if there are none."""
    regions = attribution.batch.regions
    if regions is None:
        raise NotApplicable(
            "localisation needs to know where the answer is, and this data set has no regions: give masks"
        )
    return regions


def check_pair(maps: Maps, regions: Keep) -> None:
    """Raise `BadShape` unless these are (B, H, W) floating-point maps with bool regions of the same shape."""
    if maps.ndim != 3 or not maps.is_floating_point():
        raise BadShape(f"maps must be floating point (batch, height, width), got {tuple(maps.shape)} {maps.dtype}")
    if regions.shape != maps.shape or regions.dtype != torch.bool:
        raise BadShape(
            f"regions must have the maps' shape {tuple(maps.shape)} and dtype bool, "
            f"got {tuple(regions.shape)} {regions.dtype}"
        )


def finite_rows(maps: Maps) -> Tensor:
    """(B,) bool: whether a map is finite everywhere."""
    return maps.flatten(1).isfinite().all(1)


def remarks(maps: Maps, regions: Keep) -> tuple[str, ...]:
    """Per image: what makes its score meaningless; empty if nothing does."""
    low, high = maps.flatten(1).aminmax(dim=1)
    inside = regions.flatten(1).sum(1)
    flags = zip(
        (~finite_rows(maps)).tolist(),
        (low == high).tolist(),
        (inside == 0).tolist(),
        (inside == regions.flatten(1).shape[1]).tolist(),
        strict=True,
    )
    words = (NOT_FINITE, CONSTANT, EMPTY, FULL)
    return tuple("; ".join(word for word, true in zip(words, row, strict=True) if true) for row in flags)
