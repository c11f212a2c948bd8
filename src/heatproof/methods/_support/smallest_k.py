"""The k smallest values per row, without a full sort."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Counts = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

SHIFT = 19  # of a float's 32 bits: its exponent and four more remain
BINS = 1 << (31 - SHIFT)


class Smallest(NamedTuple):
    """The smallest values of each row: the largest of them, exactly, and how many there are (ties included)."""

    bound: Numbers
    number: Counts


class ByRank(Protocol):
    def __call__(self, count: Counts, /) -> Smallest:
        """At least `count` values of each row, from 1 to all: those not larger than the value of that rank."""


def by_rank(values: Tensor) -> ByRank:
    """An index of the values (rows, n), none of them negative, from which the smallest can be read."""
    return Counted(values) if values.device.type == "cpu" and values.dtype == torch.float32 else Sorted(values)


class Sorted:
    """By a full sort: for any type, on any device."""

    def __init__(self, values: Tensor) -> None:
        self.values = values.sort(1).values

    def __call__(self, count: Counts, /) -> Smallest:
        bound = self.values.gather(1, torch.from_numpy(count - 1).to(self.values.device)[:, None])
        number = torch.searchsorted(self.values, bound, right=True)
        return Smallest(bound[:, 0].cpu().double().numpy(), number[:, 0].cpu().numpy())


class Counted:
    """By counting leading bits, which are in the order of the values: that takes a tenth of the time of sorting, and
    then only the values that share their leading bits with the wanted rank need be sorted.

    Ranks are counted on from row to row, so that one search serves all rows.
    """

    def __init__(self, values: Tensor) -> None:
        self.bits = values.numpy().view(np.int32)
        rows, columns = values.shape
        self.rows, self.before = np.arange(rows) << 32, columns * np.arange(rows)
        self.leading = np.right_shift(self.bits, SHIFT)
        self.leading += np.arange(0, BINS * rows, BINS, dtype=np.int32)[:, None]  # distinct bins for every row
        # By torch, which counts int32 as it is: numpy would first convert it to int64.
        self.counts = torch.bincount(torch.from_numpy(self.leading).view(-1), minlength=BINS * rows).numpy()
        self.reached = self.counts.cumsum()

    def __call__(self, count: Counts, /) -> Smallest:
        rank = count + self.before
        place = self.reached.searchsorted(rank)
        size = self.counts[place]
        before = self.reached[place] - size
        found = np.flatnonzero(self.leading == place.astype(np.int32)[:, None])
        alike = self.bits.ravel()[found] + self.rows.repeat(size)
        alike.sort()  # by row, then by value
        first = size.cumsum() - size
        bound = alike[first + rank - before - 1]
        number = alike.searchsorted(bound, "right") - first + before - self.before
        return Smallest((bound - self.rows).astype(np.int32).view(np.float32).astype(np.float64), number)
