"""The smallest so many values of each row, without sorting them all."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Counts = npt.NDArray[np.int64]

SHIFT = 19  # of a float's 32 bits: its exponent and four more remain
BINS = 1 << (31 - SHIFT)


class Smallest(NamedTuple):
    """The smallest values of each row: the bound (rows, 1) they reach up to, and how many (rows,) they are."""

    bound: Tensor
    number: Counts


class ByRank(Protocol):
    def __call__(self, count: Counts, /) -> Smallest:
        """At least so many of each row, from 1 to all: those that are not larger than the one of that rank."""


def by_rank(values: Tensor) -> ByRank:
    """Values (rows, n), none of them negative, ready to be asked."""
    return Counted(values) if values.device.type == "cpu" and values.dtype == torch.float32 else Sorted(values)


class Sorted:
    """Of any type, anywhere."""

    def __init__(self, values: Tensor) -> None:
        self.values = values.sort(1).values

    def __call__(self, count: Counts, /) -> Smallest:
        bound = self.values.gather(1, torch.from_numpy(count - 1).to(self.values.device)[:, None])
        return Smallest(bound, torch.searchsorted(self.values, bound, right=True)[:, 0].cpu().numpy())


class Counted:
    """By their leading bits, which are in the order of the values: counting them takes a tenth of the time that
    sorting does, and then only those with the leading bits of the one that is looked for need be looked at.
    """

    def __init__(self, values: Tensor) -> None:
        self.values = values.numpy()
        self.leading = np.right_shift(self.values.view(np.int32), SHIFT)
        apart = np.add(self.leading, BINS * np.arange(len(values))[:, None], dtype=np.intp)
        self.counts = np.bincount(apart.ravel(), minlength=BINS * len(values)).reshape(-1, BINS)
        self.reached = self.counts.cumsum(1)

    def __call__(self, count: Counts, /) -> Smallest:
        bounds, numbers = zip(*map(self._find, range(len(count)), count.tolist()), strict=True)
        return Smallest(torch.tensor(bounds, dtype=torch.float32)[:, None], np.array(numbers))

    def _find(self, row: int, rank: int) -> tuple[float, int]:
        place = int(self.reached[row].searchsorted(rank))
        before = int(self.reached[row, place] - self.counts[row, place])
        alike = self.values[row][self.leading[row] == place]
        alike.partition(rank - before - 1)
        bound = float(alike[rank - before - 1])
        return bound, before + int(np.count_nonzero(alike <= bound))
