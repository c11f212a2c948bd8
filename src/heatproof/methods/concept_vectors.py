"""Concept activation vectors: the direction in a layer that tells pictures with a concept from pictures without.

A score counts only if the concept's directions give other scores than directions between random sets do: two-sided
Welch test over at least ten of each.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import linalg, stats
from torch import Tensor

from heatproof.errors import BadInput

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_COLUMNS = 8192  # features held in double precision at once


def direction(concept: Floats, other: Floats, alpha: float, seed: int) -> Floats:
    """The unit normal of a linear classifier (hinge loss, SGD), pointing from the other set to the concept."""
    rows = np.concatenate(balanced(concept, other))
    return _unit(weights(products(rows), alpha, seed) @ rows)


def balanced(concept: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two sets of one size, by leaving out the last of the larger; or `BadInput` where nothing could be learnt."""
    count = min(len(concept), len(other))
    if count < 2:
        raise BadInput(
            f"a concept vector needs at least 2 pictures on either side, got {len(concept)} and {len(other)}"
        )
    return concept[:count], other[:count]


def products(rows: Floats) -> Doubles:
    """Of all (n, features) rows with each other, (n, n)."""
    total = np.zeros((len(rows), len(rows)))
    for start in range(0, rows.shape[1], _COLUMNS):
        part = rows[:, start : start + _COLUMNS].astype(np.float64)  # a product squares what float32 rounds
        total += part @ part.T
    return total


def weights(own_products: Doubles, alpha: float, seed: int) -> Doubles:
    """How much each of 2n pictures, n with the concept first, counts in the normal of a classifier of the two halves.

    A linear classifier never leaves the span of its pictures and knows them by their products alone, so it is fitted
    in coordinates of as many dimensions as there are pictures: the same fit, hundreds of times smaller than the layer.
    """
    from sklearn import config_context
    from sklearn.linear_model import SGDClassifier

    size = len(own_products)
    jitter = 1e-10 * float(np.trace(own_products)) / size + 1e-300  # pictures may repeat, and layers may be dead
    inside = np.linalg.cholesky(own_products + jitter * np.eye(size))
    classifier = SGDClassifier(alpha=alpha, max_iter=1000, tol=1e-3, random_state=seed)
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore")  # not converged in 1000 rounds is still a direction
        classifier.fit(inside, np.repeat([1, 0], size // 2))
    return np.asarray(linalg.solve_triangular(inside, classifier.coef_[0], trans="T", lower=True), dtype=np.float64)


def directions(concept: Floats, pool: Floats, runs: int, size: int, alpha: float, seed: int) -> tuple[Floats, Floats]:
    """(runs, features) twice: concept against random sets, and random against random sets, sharing no picture.

    Every run draws two disjoint random sets from the pool; the first stands for the concept in the second family.
    """
    if runs < 2 or len(pool) < 2 * size:
        raise BadInput(
            f"{runs} random counterparts of {size} pictures need at least 2 runs and {2 * size} pictures without the "
            f"concept, got {len(pool)}"
        )
    rows = np.concatenate([concept, pool])
    every = products(rows)
    counted = np.zeros((2, runs, len(rows)))
    for run in range(runs):
        order = len(concept) + np.random.default_rng([seed, run]).permutation(len(pool))
        first, second = order[:size], order[size : 2 * size]
        for family, (one, other) in enumerate(((np.arange(len(concept)), second), (first, second))):
            taken = np.concatenate(balanced(one, other))
            counted[family, run, taken] = weights(every[np.ix_(taken, taken)], alpha, run)
    own, chance = (_unit(family.astype(np.float32) @ rows) for family in counted)
    return own, chance


def _unit(normals: Floats | Doubles) -> Floats:
    """Of length one, where there is a length."""
    lengths = np.linalg.norm(normals, axis=-1, keepdims=True)
    return np.asarray(normals / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class LayerScore:
    """What a concept does to the target in one layer."""

    layer: str
    positive: Tensor  # (runs, B) bool: whether going towards the concept raises the answer
    random: Tensor  # (runs, B) bool: the same for directions between random sets
    p_value: float  # of equal mean scores of the two families

    @property
    def score(self) -> float:
        """TCAV: the share of pictures whose answer rises, mean over runs."""
        return float(self.positive.double().mean())

    @property
    def chance(self) -> float:
        return float(self.random.double().mean())


def layer_score(layer: str, gradients: Tensor, own: Floats, chance: Floats) -> LayerScore:
    """Scores of all directions at once: one product of gradients and directions."""
    slopes = gradients.flatten(1).float().cpu()
    rises = [(torch.from_numpy(vectors) @ slopes.T) > 0 for vectors in (own, chance)]
    return LayerScore(layer, rises[0], rises[1], welch(*(rise.double().mean(1).numpy() for rise in rises)))


def welch(one: Sequence[float] | NDArray[np.float64], other: Sequence[float] | NDArray[np.float64]) -> float:
    """Two-sided p of equal means; without any spread it is 1 if they agree and 0 if not."""
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if np.ptp(first) == 0 and np.ptp(second) == 0:
        return 1.0 if first[0] == second[0] else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one family without spread is no trouble if the other has some
        return float(stats.ttest_ind(first, second, equal_var=False).pvalue)
