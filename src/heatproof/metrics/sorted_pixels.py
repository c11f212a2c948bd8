"""Pixels sorted by heat, inside and outside a region: what every count at every threshold is read from.

All on the CPU in numpy, whose sort uses vector instructions; a batch of maps is small beside what made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from heatproof.types import Keep, Maps

Values: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]

_ONE, _HALF = np.uint32(1), np.uint32(16)
COUNTED = 32  # thresholds; each takes 8 microseconds for a picture of 224², the sorts 400 to 1,400 by processor


def rows(maps: Maps, regions: Keep) -> Iterator[tuple[Values, Flags]]:
    """Each map and its region as flat float32 and bool arrays.

    Float32 also where the map came in another precision: thresholds are held in float32, and a value that is
    equal to a threshold must stay so. (0.7 in float32 is less than 0.7 in float64.)
    """
    flat = maps.detach().float().cpu().flatten(1).contiguous().numpy()
    inside = regions.cpu().flatten(1).contiguous().numpy()
    yield from zip(flat, inside, strict=True)


def tail_counts(values: Values, region: Flags, thresholds: Values) -> tuple[NDArray[Any], NDArray[Any]]:
    """How many pixels are >= each threshold inside, and outside, the region: (K,) each.

    Few thresholds are counted one by one; of many the price hardly depends on K: two sorts and a binary search.
    """
    if len(thresholds) <= COUNTED:
        return _counted(values, region, thresholds)
    counts = []
    for part in (values[region], values[~region]):
        part.sort()
        counts.append(len(part) - np.searchsorted(part, thresholds, side="left"))
    return counts[0], counts[1]


def _counted(values: Values, region: Flags, thresholds: Values) -> tuple[NDArray[Any], NDArray[Any]]:
    inside, every = np.empty((2, len(thresholds)), np.int64)
    found = np.empty(len(values), bool)
    for place, threshold in enumerate(thresholds):
        np.greater_equal(values, threshold, out=found)
        every[place] = np.count_nonzero(found)
        np.logical_and(found, region, out=found)
        inside[place] = np.count_nonzero(found)
    return inside, every - inside


@dataclass(frozen=True, eq=False)
class SortedPixels:
    """One image's pixels from cold to hot."""

    values: Values  # (N,) ascending
    hotter: NDArray[Any]  # (N,) region pixels from here on, this one included

    @property
    def size(self) -> int:
        """Pixels of the region."""
        return int(self.hotter[0])

    def distinct(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Pixels (inside, outside) the region at least as hot as each distinct value, hottest first."""
        starts = np.flatnonzero(np.concatenate(([True], self.values[1:] != self.values[:-1])))[::-1]
        inside = self.hotter[starts]
        return inside, len(self.values) - starts - inside


def sorted_pixels(values: Values, region: Flags) -> SortedPixels:
    """Sort pixels and their flags together, as one integer each: the float's bits with the flag below them.

    The bits of non-negative floats order like the floats. One integer sort replaces an argsort and two
    gathers.
    """
    values = values + np.float32(0)  # -0.0 becomes 0.0
    flags: NDArray[Any]
    if len(values) and values.min() < 0:
        keys = (_ordered(values.view(np.int32)).astype(np.int64) << 1) | region
        keys.sort()
        ascending = _ordered((keys >> 1).astype(np.int32)).view(np.float32)
        flags = keys & 1
    else:
        short = (values.view(np.uint32) << _ONE) | region
        short.sort()
        ascending = (short >> _ONE).view(np.float32)
        flags = short & _ONE
    colder = np.cumsum(flags, dtype=np.int32)
    return SortedPixels(ascending, colder[-1:] - colder + flags.astype(np.int32))


def sorted_between(values: Values, region: Flags, chosen: Flags) -> SortedPixels:
    """The chosen pixels alone, none negative, sorted like all of them."""
    keys = radix_sorted(((values.view(np.uint32) << _ONE) | region)[chosen])
    flags = keys & _ONE
    colder = np.cumsum(flags, dtype=np.int32)
    return SortedPixels((keys >> _ONE).view(np.float32), colder[-1:] - colder + flags.astype(np.int32))


def radix_sorted(keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Ascending, by two counting sorts of 16 bits: NumPy's vector sort takes up to twice as long on AMD processors."""
    low, high = keys.astype(np.uint16), (keys >> _HALF).astype(np.uint16)
    by_low = low.argsort(kind="stable").astype(np.int32)
    return keys.take(by_low.take(high.take(by_low).argsort(kind="stable")))


def _ordered(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Float bits as integers that order like the floats; its own inverse."""
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))
