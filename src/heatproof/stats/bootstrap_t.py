"""The symmetric bootstrap-t with max-T: tests of many means at once, and intervals that hold together.

A mean is divided by its standard error before it is compared with resamples: skewed scores and unequal spreads then do
little harm. All columns of a table share the drawn images, so that the largest statistic keeps their dependence.

Where one picture carries the differences of a metric, resamples without it have huge statistics. A largest statistic
over all cards would hide every difference under the other metrics behind them: so cards with alike tails share one,
and Bonferroni's inequality is used between such groups of cards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, weights

RESAMPLES = 1999
FEWEST = 6  # images, and images on which the scores differ: five of one sign have p = .0625 by sign flips
_TINY = 1e-12  # of the variance: a resample below has drawn one value only
_TIE = 1e-9
ALIKE = 2.0  # critical values of T² of cards in a group, the largest over the smallest
Part = tuple[int, int]  # a family and a card
_COLUMNS = 2048  # at once: their resamples take 130 MB


@dataclass(frozen=True)
class StudentisedMeans:
    """Per column: mean, standard error, t, and p and critical values from the resamples; NaN where no test is possible.

    `p` and `critical` are of the column alone. `p_adjusted` and `critical_adjusted` are of the largest statistic of its
    family and of the cards with tails like its own, and allow for the number of such groups of cards. mean ± critical ·
    standard error is the interval, and it excludes 0 exactly where p ≤ alpha.
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
    strata: Sequence[NDArray[np.int64] | None] | None = None,
    clusters: Sequence[NDArray[np.int64] | None] | None = None,
    cards: Sequence[NDArray[np.int64]] | None = None,
    *,
    alpha: float = 0.05,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[StudentisedMeans]:
    """Whether the means of (images × columns) tables differ from 0, NaN marking images a column leaves out.

    Columns of one block are about the same images and share the resamples; blocks are drawn independently. A column's
    family is a number; without `families` all columns are one family. A column's card is a number, too, within its
    block: those of one metric; without `cards` a block is one card. A block with `strata` (0 … k−1 per image) is
    resampled within them: the mean is that of images which fall into the strata in the same shares. A block with
    `clusters` (0 … k−1 per image) is resampled by whole clusters instead.
    """
    if not 0 < alpha < 1:
        raise BadInput(f"alpha must lie between 0 and 1, got {alpha}.")
    if resamples < 1:
        raise BadInput(f"resamples must be at least 1, got {resamples}.")
    if families is None:
        families = [np.zeros(block.shape[1], dtype=np.int64) for block in blocks]
    if cards is None:
        cards = [np.zeros(block.shape[1], dtype=np.int64) for block in blocks]
    strata = [None] * len(blocks) if strata is None else strata
    clusters = [None] * len(blocks) if clusters is None else clusters
    drawn: list[_Drawn] = []
    for at, (block, family, stratum, cluster) in enumerate(zip(blocks, families, strata, clusters, strict=True)):
        n, mean, error = moments(block, stratum) if cluster is None else _clustered_moments(block, cluster)
        able = testable(block, error)
        squares = np.full((block.shape[1], resamples), np.nan, dtype=np.float32)
        for part in np.array_split(np.flatnonzero(able), max(1, -(-int(able.sum()) // _COLUMNS))):
            if len(part):
                squares[part] = _drawn_squares(block[:, part], stratum, cluster, resamples, seed + 7919 * at).T
        drawn.append(_Drawn(n, mean, error, able, squares, family, cards[at]))
    families_of = _families(drawn, alpha)
    return [_judged(one, families_of[at], alpha) for at, one in enumerate(drawn)]


def moments(
    block: FloatArray, strata: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Per column: images, mean, and the standard error of the mean (NaN for fewer than two images).

    Within strata it is √(Σ (n_g/n)² s_g²/n_g); a stratum with one image is taken to vary as all images do.
    """
    there = ~np.isnan(block)
    n = there.sum(axis=0)
    filled = np.where(there, block, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=0) / n
        spread = np.where(there, block - mean, 0.0)
        variance = (spread**2).sum(axis=0) / (n - 1)
        error = np.sqrt(variance / n)
        if strata is not None:
            total = np.zeros(len(n))
            for stratum in range(int(strata.max()) + 1):
                inside = there[strata == stratum]
                size = inside.sum(axis=0)
                own = filled[strata == stratum].sum(axis=0) / size
                squares = (np.where(inside, block[strata == stratum] - own, 0.0) ** 2).sum(axis=0)
                total += np.where(size > 0, size * np.where(size > 1, squares / (size - 1), variance), 0.0)
            error = np.sqrt(total) / n
    size = np.abs(filled).max(axis=0, initial=0.0)
    error = np.where(n < 2, np.nan, np.where(error <= 1e-12 * size, 0.0, error))  # rounding noise of equal numbers
    return n, mean, error


def testable(block: FloatArray, error: FloatArray) -> NDArray[np.bool_]:
    """Which columns have enough images that are not 0, and a variance."""
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
    return np.asarray(np.nan_to_num(found), dtype=np.float64)


def _drawn_squares(
    block: FloatArray,
    strata: NDArray[np.int64] | None,
    clusters: NDArray[np.int64] | None,
    resamples: int,
    seed: int,
) -> FloatArray:
    if clusters is not None:
        return _clustered_squares(block, clusters, resamples, seed)
    return _squares(block, strata, resamples, seed)


def _squares(block: FloatArray, strata: NDArray[np.int64] | None, resamples: int, seed: int) -> FloatArray:
    """(resamples, columns): T*² of every resample, 0 where a resample has no variance."""
    there = ~np.isnan(block)
    n = there.sum(axis=0)
    centred = np.where(there, block - np.nanmean(block, axis=0), 0.0)
    centred /= np.sqrt((centred**2).sum(axis=0) / n)
    members = [np.arange(len(block))] if strata is None else [np.flatnonzero(strata == g) for g in np.unique(strata)]
    deviation, variance = np.zeros((2, resamples, block.shape[1]))
    for at, own in enumerate(members):
        values, present = centred[own], there[own]
        share = present.sum(axis=0) / n
        holes = not present.all()
        centre = np.zeros(block.shape[1]) if strata is None else values.sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        values = np.where(present, values - centre, 0.0)
        squared, start = values**2, 0
        for drawn in _rows(len(own), block.shape[1], resamples, seed + 104_729 * at):
            size = drawn @ present.astype(np.float64) if holes else float(len(own))
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = drawn @ values / size
                spread = (drawn @ squared / size - mean**2) / (size - 1)
            enough = size > 1  # else the resample has no information on this stratum
            here = slice(start, start + len(drawn))
            deviation[here] += np.where(enough, share * mean, 0.0)
            variance[here] += np.where(enough & (spread > _TINY), share**2 * spread, 0.0)
            start += len(drawn)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > _TINY / n, deviation**2 / variance, 0.0)


def _clustered_moments(
    block: FloatArray, cluster: NDArray[np.int64]
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """As `moments`, with the standard error of a ratio of cluster sums."""
    n, mean, _ = moments(block)
    sums, sizes = _cluster_sums(block - mean, cluster)
    count = (sizes > 0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((sums**2).sum(axis=0) * count / (count - 1)) / n
    size = np.abs(np.where(np.isnan(block), 0.0, block)).max(axis=0, initial=0.0)
    return n, mean, np.where(error <= 1e-12 * size, 0.0, error)


def _clustered_squares(block: FloatArray, cluster: NDArray[np.int64], resamples: int, seed: int) -> FloatArray:
    """As `_squares`, drawing whole clusters."""
    centred = block - np.nanmean(block, axis=0)
    centred /= np.sqrt(np.nanmean(centred**2, axis=0))
    sums, sizes = _cluster_sums(centred, cluster)
    squared, crossed, own = sums**2, sums * sizes, sizes**2
    there = (sizes > 0).astype(np.float64)
    parts = []
    for drawn in _rows(len(sums), block.shape[1], resamples, seed):
        with np.errstate(invalid="ignore", divide="ignore"):
            total, count = drawn @ sizes, drawn @ there
            mean = drawn @ sums / total
            spread = (drawn @ squared - 2 * mean * (drawn @ crossed) + mean**2 * (drawn @ own)) * count / (count - 1)
            found = mean**2 * total**2 / spread
        parts.append(np.where(np.nan_to_num(spread) > _TINY * len(block), found, 0.0))
    return np.concatenate(parts)


def _cluster_sums(block: FloatArray, cluster: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """(clusters × columns): sums and counts of the numbers that are not missing."""
    there = ~np.isnan(block)
    count = int(cluster.max()) + 1
    columns = zip(np.where(there, block, 0.0).T, there.T.astype(np.float64), strict=True)
    pairs = [(np.bincount(cluster, x, count), np.bincount(cluster, w, count)) for x, w in columns]
    return np.stack([sums for sums, _ in pairs], axis=1), np.stack([sizes for _, sizes in pairs], axis=1)


def _rows(images: int, columns: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """The weights in blocks of rows, small enough that the products stay in memory."""
    most = max(1, (1 << 22) // max(columns, 1))
    for block in weights(images, resamples, seed):
        for start in range(0, len(block), most):
            yield block[start : start + most]


@dataclass(frozen=True)
class _Drawn:
    """A block with its resamples: T*² of (columns, resamples), NaN where a column has no test."""

    n: NDArray[np.int64]
    mean: FloatArray
    error: FloatArray
    able: NDArray[np.bool_]
    squares: NDArray[np.float32]
    family: NDArray[np.int64]
    card: NDArray[np.int64]

    @property
    def parts(self) -> list[Part]:
        """Every family and card with a column that can be tested."""
        pairs = zip(self.family[self.able], self.card[self.able], strict=True)
        return sorted({(int(name), int(card)) for name, card in pairs})

    def of(self, name: int, card: int) -> NDArray[np.bool_]:
        """Which columns can be tested and belong to this family and card."""
        return np.asarray(self.able & (self.family == name) & (self.card == card), dtype=np.bool_)

    def largest(self, name: int, card: int) -> FloatArray:
        """The largest T*² of every resample among these columns."""
        return np.asarray(self.squares[self.of(name, card)].max(axis=0), dtype=np.float64)


@dataclass(frozen=True)
class _Family:
    """The largest statistics of cards with alike tails, in order, and how many such groups the family has."""

    largest: FloatArray
    groups: int


def _families(drawn: Sequence[_Drawn], alpha: float) -> list[dict[Part, _Family]]:
    """Per block: whose largest statistics the columns of each family and card are compared with."""
    found: list[dict[Part, _Family]] = [{} for _ in drawn]
    for name in sorted({name for one in drawn for name, _ in one.parts}):
        places = [(at, card) for at, one in enumerate(drawn) for family, card in one.parts if family == name]
        largest = [drawn[at].largest(name, card) for at, card in places]
        groups = _alike([float(np.quantile(each, 1 - alpha)) for each in largest])
        for group in groups:
            together = np.sort(np.max([largest[place] for place in group], axis=0))
            for place in group:
                at, card = places[place]
                found[at][name, card] = _Family(together, len(groups))
    return found


def _alike(tails: Sequence[float]) -> list[list[int]]:
    """Places of critical squares in groups within which none is more than `ALIKE` times the smallest."""
    groups: list[list[int]] = []
    for place in sorted(range(len(tails)), key=tails.__getitem__):
        if groups and tails[place] <= ALIKE * tails[groups[-1][0]]:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _judged(drawn: _Drawn, families: Mapping[Part, _Family], alpha: float) -> StudentisedMeans:
    able, squares = drawn.able, drawn.squares
    resamples = squares.shape[1]
    p, p_adjusted, critical, critical_adjusted = np.full((4, len(able)), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = (drawn.mean / drawn.error) ** 2 * (1 - _TIE)
    rank = _rank(alpha, resamples)
    p[able] = (1 + (squares[able] >= own[able, None]).sum(axis=1)) / (resamples + 1)
    critical[able] = np.sqrt(np.partition(squares[able], rank - 1, axis=1)[:, rank - 1])
    for part, family in families.items():
        here = drawn.of(*part)
        beyond = 1 + resamples - np.searchsorted(family.largest, own[here], side="left")
        p_adjusted[here] = np.minimum(1.0, beyond / (resamples + 1) * family.groups)
        rank = _rank(alpha / family.groups, resamples)
        critical_adjusted[here] = np.sqrt(family.largest[rank - 1]) if rank <= resamples else np.inf
    return StudentisedMeans(drawn.n, drawn.mean, drawn.error, p, p_adjusted, critical, critical_adjusted)


def _rank(level: float, resamples: int) -> int:
    """The place of the critical value among the ordered resamples: p ≤ level beyond it; more than there are: never."""
    return int(np.ceil((1 - level) * (resamples + 1) - _TIE))
