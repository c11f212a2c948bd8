"""Method × class: whether the difference of two methods depends on the fixed group a picture belongs to.

Every group's mean difference is compared with the mean over all groups, in the group's own standard errors.
The reference is a bootstrap of the differences around their own group's mean, with the largest statistic of all pairs
and groups: groups may be unequally variable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, weights
from heatproof.stats.bootstrap_t import RESAMPLES
from heatproof.stats.ranks import check_table, rank
from heatproof.stats.significance import without_rounding

FEWEST_IN_GROUP = 10  # pictures: the spread of fewer is too uncertain


@dataclass(frozen=True, eq=False)
class Interaction:
    """Whether the order of methods changes with the group.

    `cells` has a row per pair and group: the deviation of the group's mean difference from the mean over all groups, t
    and p adjusted for all pairs and groups. `ranks` holds each method's rank by mean in each group.
    """

    p: float
    cells: pd.DataFrame
    means: pd.DataFrame  # groups × methods
    ranks: pd.DataFrame  # groups × methods
    left_out: tuple[str, ...]  # groups with too few pictures
    n: int
    alpha: float

    def sentences(self, kind: str = "class") -> list[str]:
        """The finding in words; empty where no interaction is shown. `kind` says what the groups are."""
        if not self.p <= self.alpha:
            return []
        solid = self.cells[self.cells["p_adjusted"] <= self.alpha]
        involved = {*solid["method_a"], *solid["method_b"]}
        spans = self.ranks[[name for name in self.ranks.columns if name in involved]]
        widest = str((spans.max() - spans.min()).idxmax())
        column = self.ranks[widest]
        best, worst = str(column.idxmin()), str(column.idxmax())
        lead = f"Which method is ahead depends on the {kind} (p = {self.p:.2g}, {self.n} images)"
        if column.max() == column.min():
            return [f"How far methods are apart depends on the {kind} (p = {self.p:.2g}, {self.n} images)."]
        last = len(self.ranks.columns)
        return [f"{lead}: {widest} is {_place(column.min(), last)} on {best}, {_place(column.max(), last)} on {worst}."]


def interaction(
    table: pd.DataFrame,
    groups: ArrayLike,
    *,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interaction:
    """Test pairs × groups of a (pictures × methods) table, on the pictures that have every score."""
    checked = check_table(table)
    labels = np.asarray(groups, dtype=object)
    if labels.shape != (len(checked),):
        raise BadInput(f"groups must be one per picture ({len(checked)}), got shape {labels.shape}.")
    if checked.shape[1] < 2:
        raise BadInput("an interaction needs at least two methods, got one.")
    whole = checked.notna().all(axis=1).to_numpy() & np.array([not pd.isna(one) for one in labels], dtype=np.bool_)
    names, sizes = np.unique(labels[whole].astype(str), return_counts=True)
    kept = names[sizes >= FEWEST_IN_GROUP]
    if len(kept) < 2:
        raise BadInput(
            f"an interaction needs at least two groups of {FEWEST_IN_GROUP} pictures with all scores, got {len(kept)}."
        )
    whole &= np.isin(labels.astype(str), kept)
    values = checked.to_numpy()[whole]
    code = np.searchsorted(kept, labels[whole].astype(str))
    a, b = np.triu_indices(values.shape[1], 1)
    differences = without_rounding(values[:, a], values[:, b])
    t, deviation = _statistics(differences, code, np.ones((1, len(code))))
    largest = _resampled(differences, code, resamples, seed)
    size = np.abs(t[0])
    adjusted = (1 + (largest[:, None, None] >= size[None] * (1 - 1e-9)).sum(axis=0)) / (resamples + 1)
    adjusted = np.where(np.isnan(t[0]), 1.0, adjusted)
    methods = [str(name) for name in checked.columns]
    cells = pd.DataFrame(
        {
            "method_a": np.repeat([methods[i] for i in a], len(kept)),
            "method_b": np.repeat([methods[i] for i in b], len(kept)),
            "group": np.tile(kept, len(a)),
            "deviation": deviation[0].T.ravel(),
            "t": t[0].T.ravel(),
            "p_adjusted": adjusted.T.ravel(),
        }
    )
    means = pd.DataFrame([values[code == g].mean(axis=0) for g in range(len(kept))], index=kept, columns=methods)
    ranks = pd.DataFrame(rank(means.to_numpy(), higher_is_better), index=kept, columns=methods)
    left_out = tuple(str(name) for name in names if name not in kept)
    return Interaction(float(adjusted.min()), cells, means, ranks, left_out, len(code), alpha)


def _statistics(differences: FloatArray, code: NDArray[np.int64], counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """t and deviation, (resamples, groups, pairs), of weighted images."""
    groups = int(code.max()) + 1
    share = np.bincount(code) / len(code)
    means, variances = [], []
    for g in range(groups):
        own, drawn = differences[code == g], counts[:, code == g]
        n = drawn.sum(axis=1, keepdims=True)
        mean = drawn @ own / n
        means.append(mean)
        spread = np.maximum(drawn @ own**2 / n - mean**2, 0.0)
        variances.append(np.where(spread <= 1e-12 * (own**2).max(axis=0, initial=0.0), 0.0, spread / (n - 1)))
    mean, variance = np.stack(means, axis=1), np.stack(variances, axis=1)
    weighted = share[None, :, None]
    deviation = mean - (weighted * mean).sum(axis=1, keepdims=True)
    total = (weighted**2 * variance).sum(axis=1, keepdims=True)
    error = total + ((1 - weighted) ** 2 - weighted**2) * variance
    with np.errstate(invalid="ignore", divide="ignore"):
        t = deviation / np.sqrt(error)
    return np.where(error > 0, t, np.nan), deviation


def _resampled(differences: FloatArray, code: NDArray[np.int64], resamples: int, seed: int) -> FloatArray:
    """The largest |t| of each resample, drawn within groups from differences around their group's mean."""
    centred = differences.copy()
    for g in range(int(code.max()) + 1):
        centred[code == g] -= centred[code == g].mean(axis=0)
    largest = []
    size = max(1, (1 << 22) // (differences.shape[1] * (int(code.max()) + 1) + len(code)))
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        counts = np.zeros((rows, len(code)))
        for g in range(int(code.max()) + 1):
            n = int((code == g).sum())
            counts[:, code == g] = np.vstack(list(weights(n, rows, seed + 7919 * g + 104_729 * start)))
        t, _ = _statistics(centred, code, counts)
        largest.append(np.nan_to_num(np.abs(t)).max(axis=(1, 2)))
    return np.concatenate(largest)


def _place(rank_: float, last: int) -> str:
    return "first" if rank_ == 1 else "last" if rank_ == last else f"number {rank_:g}"
