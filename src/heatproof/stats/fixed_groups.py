"""Strata of fixed groups: variation between them adds no uncertainty about new pictures of the same groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SMALLEST = 5  # pictures: smaller groups are one stratum, their differences count as noise


def strata(groupings: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """The strata 0 … k−1 that pictures are resampled within; None where no two are large enough.

    Several kinds of groups give the cells in which they meet if most pictures lie in cells that are large enough, else
    the one kind that leaves most strata. What is left out counts as noise, so that a test stays valid and loses some
    power. The choice depends on sizes alone, never on the scores.
    """
    if not len(groupings):
        return None
    found = [_merged(index) for index in groupings]
    if len(groupings) > 1:
        cells = np.unique(np.stack(groupings), axis=1, return_inverse=True)[1].ravel().astype(np.int64)
        if np.bincount(cells)[cells].mean() >= SMALLEST and (np.bincount(cells)[cells] >= SMALLEST).mean() > 0.5:
            found.insert(0, _merged(cells))
    best = max(found, key=lambda index: int(index.max(initial=0)))
    return best if best.max(initial=0) > 0 else None


def _merged(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups as 0 … k−1, the small ones as one; if they are small together, they join the smallest of the others."""
    index = np.unique(index, return_inverse=True)[1].ravel()
    sizes = np.bincount(index)
    small = sizes < SMALLEST
    if small.any():
        large = np.flatnonzero(~small)
        rest = len(sizes)
        if sizes[small].sum() < SMALLEST:
            rest = int(large[np.argmin(sizes[large])]) if len(large) else 0
        index = np.where(small[index], rest, index)
    return np.asarray(np.unique(index, return_inverse=True)[1].ravel(), dtype=np.int64)
