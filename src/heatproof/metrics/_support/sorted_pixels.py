"""Pixels sorted by heat, inside and outside a region: the basis of every count at every threshold.

All on the CPU in numpy, whose sort uses vector instructions; the cost is small beside that of the maps.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from heatproof.types import Keep, Maps

Values: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]

_ONE = np.uint32(1)
_RADIX = 2**15  # numbers from which on torch sorts by radix
COUNTED = 32  # thresholds; each takes 5 microseconds for a picture of 224², the sorts 400 to 1,400 by processor
LARGEST = 2**24  # pixels; OpenCV's histograms are exact below


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

    With few thresholds a histogram counts how many of them each pixel reaches; with many the
    price hardly depends on K: two sorts and a binary search.
    """
    if len(thresholds) <= COUNTED and len(values) < LARGEST:
        return _counted(values, region, thresholds)
    counts = []
    for part in (values[region], values[~region]):
        part.sort()
        counts.append(len(part) - np.searchsorted(part, thresholds, side="left"))
    return counts[0], counts[1]


def _counted(values: Values, region: Flags, thresholds: Values) -> tuple[NDArray[Any], NDArray[Any]]:
    order = thresholds.argsort()
    reached, found = np.zeros(len(values), np.uint8), np.empty(len(values), bool)
    for threshold in thresholds[order]:
        np.greater_equal(values, threshold, out=found)
        reached += found.view(np.uint8)
    reached *= 2
    reached += region.view(np.uint8)
    bins = 2 * (len(thresholds) + 1)
    held = cv2.calcHist([reached], [0], None, [bins], [0, bins]).reshape(-1, 2).astype(np.int64)
    at_least = held[::-1].cumsum(0)[::-1][1:]  # at the thresholds in ascending order: outside, inside
    counts = np.empty_like(at_least)
    counts[order] = at_least
    return counts[:, 1], counts[:, 0]


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
    if not len(values) or values.min() >= 0:
        return _from_keys(ascending((values.view(np.uint32) << _ONE) | region))
    keys = (_ordered(values.view(np.int32)).astype(np.int64) << 1) | region
    keys.sort()
    flags = (keys & 1).astype(np.int32)
    colder = np.cumsum(flags, dtype=np.int32)
    return SortedPixels(_ordered((keys >> 1).astype(np.int32)).view(np.float32), colder[-1:] - colder + flags)


def sorted_between(values: Values, region: Flags, chosen: Flags) -> SortedPixels:
    """The chosen pixels alone, none negative, sorted like all of them."""
    places = np.flatnonzero(chosen)  # random masks slow `values[chosen]` down
    keys = values.view(np.uint32).take(places)
    keys <<= _ONE
    keys |= region.take(places)
    return _from_keys(ascending(keys))


def _from_keys(keys: NDArray[np.uint32]) -> SortedPixels:
    flags = keys & _ONE
    colder = np.cumsum(flags, dtype=np.int32)
    return SortedPixels((keys >> _ONE).view(np.float32), colder[-1:] - colder + flags.astype(np.int32))


def ascending(keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Sorted, by the faster of two sorts on this machine; the result is the same."""
    few = len(keys) < _RADIX // 4
    return np.sort(keys) if few or int(keys.max()) >= 2**31 or not _radix_is_quicker() else _by_radix(keys)


def _by_radix(keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """By torch, which sorts whole numbers below 2³¹ by radix where there are enough of them."""
    missing = max(0, _RADIX - len(keys))
    enough = np.concatenate([keys, np.full(missing, 2**31 - 1, np.uint32)]) if missing else keys
    found = torch.from_numpy(enough.view(np.int32)).sort().values[: len(keys)]
    return np.asarray(found.numpy()).view(np.uint32)


@functools.cache
def _radix_is_quicker() -> bool:
    """Measured once: NumPy's vector sort takes two to four times as long on AMD as on Intel, torch may lack radix."""
    keys = np.random.default_rng(0).integers(0, 2**31, _RADIX, np.uint32)
    taken = {sort: min(_seconds(sort, keys) for _ in range(3)) for sort in (_by_radix, np.sort)}
    return taken[_by_radix] < taken[np.sort]


def _seconds(sort: Callable[[NDArray[np.uint32]], object], keys: NDArray[np.uint32]) -> float:
    before = time.perf_counter()
    sort(keys)
    return time.perf_counter() - before


def _ordered(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Float bits as integers that order like the floats; its own inverse."""
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))
