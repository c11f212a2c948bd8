"""Stratification over fixed groups: the variation between them is no doubt about new pictures of the same groups.

Group means are fitted (additively, for several kinds of groups) and taken out; what remains of an image is scaled by its
leverage, so that the variance of the mean is unbiased. For one kind of groups it is the stratified variance
Σ (n_g/n)² s_g²/n_g.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heatproof.stats.bootstrap import FloatArray
from heatproof.stats.missing_patterns import alike

SMALLEST = 3  # pictures: smaller groups are one group, their differences count as noise
MOST = 0.25  # of the pictures may be spent on group means: beyond, nothing is left to judge the noise by


def usable(groupings: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The groupings to stratify by, small groups merged. The one with most groups goes first where they ask too much.

    Which are left depends on the sizes of groups alone, never on the scores. A test that leaves one out stays valid: it
    takes the variation between these groups for noise.
    """
    kept = [merged for merged in map(_merged, groupings) if merged.max(initial=0) > 0]
    while kept and 1 + sum(int(index.max()) for index in kept) > MOST * len(kept[0]):
        del kept[int(np.argmax([index.max() for index in kept]))]
    return kept


def stratified(block: FloatArray, groupings: Sequence[NDArray[np.int64]]) -> FloatArray:
    """The (images × columns) table with the same means and without the differences between groups."""
    if not groupings:
        return block
    found = np.array(block, dtype=np.float64)
    for there, own in alike(block):
        kept = usable([index[there] for index in groupings]) if there.any() else []
        if kept:
            place = np.ix_(there, own)
            found[place] = _without_groups(block[place], kept)
    return found


def _without_groups(values: FloatArray, groupings: Sequence[NDArray[np.int64]]) -> FloatArray:
    columns = [np.ones((len(values), 1))]
    columns += [(index[:, None] == np.arange(1, index.max() + 1)).astype(np.float64) for index in groupings]
    left, singular, _ = np.linalg.svd(np.hstack(columns), full_matrices=False)
    basis = left[:, singular > 1e-9 * singular[0]]
    leverage = (basis**2).sum(axis=1, keepdims=True)
    mean = values.mean(axis=0)
    centred = values - mean
    remaining = centred - basis @ (basis.T @ centred)
    remaining[np.abs(remaining) <= 1e-12 * np.abs(values).max(axis=0, initial=0.0)] = 0.0
    scaled = remaining / np.sqrt(np.maximum(1 - leverage, 1e-9))
    return np.asarray(mean + scaled - scaled.mean(axis=0), dtype=np.float64)


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
