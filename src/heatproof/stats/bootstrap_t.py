"""The symmetric bootstrap-t with max-T: tests of many means at once, and intervals that hold together.

A mean is divided by its standard error before it is compared with resamples: skewed scores and unequal spreads then do
little harm. All columns of a table share the drawn images, so that the largest of all statistics keeps their dependence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, weights

RESAMPLES = 1999
FEWEST = 6  # images, and images on which the scores differ: five of one sign have p = .0625 by sign flips
_TINY = 1e-12  # of the variance: a resample below has drawn one value only
_TIE = 1e-9


@dataclass(frozen=True)
class StudentisedMeans:
    """Per column: mean, standard error, t, and what the resamples say of them; NaN where no test is possible.

    `p` and `critical` are of the column alone, `p_adjusted` and `critical_adjusted` of the largest statistic of its
    family: mean ± critical · standard error is the interval, and it excludes 0 exactly where p ≤ alpha.
    """

    n: NDArray[np.int64]
    mean: FloatArray
    error: FloatArray
    p: FloatArray
    p_adjusted: FloatArray
    critical: FloatArray
    critical_adjusted: FloatArray

    @property
    def t(self) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.mean / self.error, dtype=np.float64)


def bootstrap_t(
    blocks: Sequence[FloatArray],
    families: Sequence[NDArray[np.int64]] | None = None,
    *,
    alpha: float = 0.05,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[StudentisedMeans]:
    """Whether the means of (images × columns) tables differ from 0, NaN marking images a column leaves out.

    Columns of one block are about the same images and share the resamples; blocks are drawn independently. A column's
    family is a number; without `families` all columns are one family.
    """
    if not 0 < alpha < 1:
        raise BadInput(f"alpha must lie between 0 and 1, got {alpha}.")
    if resamples < 1:
        raise BadInput(f"resamples must be at least 1, got {resamples}.")
    if families is None:
        families = [np.zeros(block.shape[1], dtype=np.int64) for block in blocks]
    names = sorted({int(one) for family in families for one in family})
    largest = {name: np.zeros(resamples) for name in names}
    drawn: list[tuple[FloatArray, ...]] = []
    for at, (block, family) in enumerate(zip(blocks, families, strict=True)):
        n, mean, error = moments(block)
        able = testable(block, error)
        squares = np.full((block.shape[1], resamples), np.nan, dtype=np.float32)
        if able.any():
            squares[able] = _squares(block[:, able], resamples, seed + 7919 * at).T
        for name in names:
            of_family = able & (family == name)
            if of_family.any():
                np.maximum(largest[name], squares[of_family].max(axis=0), out=largest[name])
        drawn.append((n, mean, error, able, squares))
    return [
        _judged(*parts, family, largest, alpha) for parts, family in zip(drawn, families, strict=True)
    ]


def moments(block: FloatArray) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Per column: images, mean, and the standard error of the mean (NaN for fewer than two images)."""
    there = ~np.isnan(block)
    n = there.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(there, block, 0.0).sum(axis=0) / n
        spread = np.where(there, block - mean, 0.0)
        error = np.sqrt((spread**2).sum(axis=0) / (n - 1) / n)
    size = np.abs(np.where(there, block, 0.0)).max(axis=0, initial=0.0)
    error = np.where(n < 2, np.nan, np.where(error <= 1e-12 * size, 0.0, error))  # what is left of equal numbers
    return n, mean, error


def testable(block: FloatArray, error: FloatArray) -> NDArray[np.bool_]:
    """Which columns have images enough that are not 0, and a variance."""
    moved = (~np.isnan(block) & (block != 0)).sum(axis=0)
    return np.asarray((moved >= FEWEST) & (error > 0), dtype=np.bool_)


def skewness(block: FloatArray) -> FloatArray:
    """Per column; 0 where nothing varies."""
    there = ~np.isnan(block)
    with np.errstate(invalid="ignore", divide="ignore"):
        n = there.sum(axis=0)
        centred = np.where(there, block - np.where(there, block, 0.0).sum(axis=0) / n, 0.0)
        scale = np.abs(centred).max(axis=0, initial=0.0)
        centred = centred / np.where(scale > 0, scale, 1.0)
        found = (centred**3).sum(axis=0) / n / ((centred**2).sum(axis=0) / n) ** 1.5
    return np.nan_to_num(found)


def _squares(block: FloatArray, resamples: int, seed: int) -> FloatArray:
    """(resamples, columns): T*² of every resample, 0 where a resample has no variance."""
    there = ~np.isnan(block)
    n = there.sum(axis=0)
    centred = np.where(there, block - np.nanmean(block, axis=0), 0.0)
    centred /= np.sqrt((centred**2).sum(axis=0) / n)
    squared = centred**2
    holes = not there.all()
    present = there.astype(np.float64)
    parts = []
    for drawn in _rows(len(block), block.shape[1], resamples, seed):
        size = drawn @ present if holes else float(len(block))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = drawn @ centred / size
            variance = drawn @ squared / size - mean**2
            found = mean**2 * (size - 1) / variance
        parts.append(np.where(variance > _TINY, found, 0.0))
    return np.concatenate(parts)


def _rows(images: int, columns: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """The weights in blocks of rows, small enough that the products stay in memory."""
    most = max(1, (1 << 22) // max(columns, 1))
    for block in weights(images, resamples, seed):
        for start in range(0, len(block), most):
            yield block[start : start + most]


def _judged(
    n: NDArray[np.int64],
    mean: FloatArray,
    error: FloatArray,
    able: NDArray[np.bool_],
    squares: FloatArray,
    family: NDArray[np.int64],
    largest: dict[int, FloatArray],
    alpha: float,
) -> StudentisedMeans:
    resamples = squares.shape[1]
    p, p_adjusted, critical, critical_adjusted = np.full((4, len(n)), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = (mean / error) ** 2 * (1 - _TIE)
    rank = min(resamples, int(np.ceil((1 - alpha) * (resamples + 1) - _TIE)))  # p ≤ alpha beyond it
    p[able] = (1 + (squares[able] >= own[able, None]).sum(axis=1)) / (resamples + 1)
    critical[able] = np.sqrt(np.partition(squares[able], rank - 1, axis=1)[:, rank - 1])
    for name, whole in largest.items():
        here = able & (family == name)
        ordered = np.sort(whole)
        p_adjusted[here] = (1 + resamples - np.searchsorted(ordered, own[here], side="left")) / (resamples + 1)
        critical_adjusted[here] = np.sqrt(ordered[rank - 1])
    return StudentisedMeans(n, mean, error, p, p_adjusted, critical, critical_adjusted)
