"""Columns grouped by the images they lack, so that what depends on the images alone is computed once per group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heatproof.stats.bootstrap import FloatArray


def alike(block: FloatArray) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """(which images are there, which columns these are), for every pattern of NaN in an (images × columns) table."""
    there = ~np.isnan(block)
    if there.all():
        yield np.ones(len(block), dtype=np.bool_), np.arange(block.shape[1])
        return
    packed = np.packbits(there, axis=0)
    _, first, member = np.unique(packed, axis=1, return_index=True, return_inverse=True)
    for at, column in enumerate(first):
        yield there[:, column], np.flatnonzero(member.ravel() == at)
