"""Concept activation vectors: the direction in a layer that separates pictures with a concept from those without.

A score counts only if it differs from the scores of random sets put in the concept's place. The published test is
Welch's, over the scores of runs: it treats runs as independent although they share the concept's pictures, so sets
without any concept pass it more often than its level says. Against `sets` each random set is one observation, however
often its counterparts are redrawn, and the mean cosine with the gradients is compared: in late layers the score of any
set, random or not, is near 0 or 1, so no score could stand out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import linalg, stats
from torch import Tensor

from heatproof.errors import BadInput

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_COLUMNS = 8192  # features held in double precision at once
REDRAWN = 5  # counterparts of a random set: more would hardly narrow the spread of sets, and fits are the cost

Against = Literal["runs", "sets"]


class Fitted(NamedTuple):
    """The directions of a concept, and the weights that make those of random sets in its place."""

    own: Floats  # (runs, features): concept against random sets, of length one
    chance: Doubles  # (sets, redrawn, pool): weight of each picture of the pool; the directions would not fit in memory


def direction(concept: Floats, other: Floats, alpha: float, seed: int) -> Floats:
    """The unit normal of a linear classifier (hinge loss, SGD), pointing from the other set to the concept."""
    rows = np.concatenate(balanced(concept, other))
    return _unit(weights(products(rows), alpha, seed) @ rows)


def balanced(concept: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two sets of equal size, without the last rows of the larger; `BadInput` where they are too small."""
    count = min(len(concept), len(other))
    if count < 2:
        raise BadInput(
            f"a concept vector needs at least 2 pictures on either side, got {len(concept)} and {len(other)}"
        )
    return concept[:count], other[:count]


def products(rows: Floats) -> Doubles:
    """The inner products (n, n) of all (n, features) rows with each other."""
    total = np.zeros((len(rows), len(rows)))
    for start in range(0, rows.shape[1], _COLUMNS):
        part = rows[:, start : start + _COLUMNS].astype(np.float64)  # a product squares what float32 rounds
        total += part @ part.T
    return total


def weights(own_products: Doubles, alpha: float, seed: int) -> Doubles:
    """The weight of each of 2n pictures, n with the concept first, in the normal of a classifier of the two halves.

    A linear classifier never leaves the span of its pictures and needs only their inner products, so it is fitted
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


def directions(
    concept: Floats, pool: Floats, runs: int, size: int, alpha: float, seed: int, redrawn: int = REDRAWN
) -> Fitted:
    """Directions of the concept against random sets of the pool, and of as many random sets, each against redrawn sets
    disjoint from it.

    The first counterpart of a random set is the one the concept has in the same run.
    """
    if runs < 2 or len(pool) < 2 * size:
        raise BadInput(
            f"{runs} random counterparts of {size} pictures need at least 2 runs and {2 * size} pictures without the "
            f"concept, got {len(pool)}"
        )
    rows = np.concatenate([concept, pool])
    every = products(rows)
    own = np.zeros((runs, len(rows)))
    chance = np.zeros((runs, redrawn, len(rows)))

    def fit(into: Doubles, one: NDArray[np.int64], other: NDArray[np.int64], number: int) -> None:
        taken = np.concatenate(balanced(one, other))
        into[taken] = weights(every[np.ix_(taken, taken)], alpha, number)

    for run in range(runs):
        order = len(concept) + np.random.default_rng([seed, run]).permutation(len(pool))
        fit(own[run], np.arange(len(concept)), order[size : 2 * size], run)
        stand_in = order[: min(size, len(concept))]  # of the concept's size: the scores of smaller sets spread more
        fit(chance[run, 0], stand_in, order[size : 2 * size], run)
        for again in range(1, redrawn):
            others = np.random.default_rng([seed, run, again]).permutation(order[size:])
            fit(chance[run, again], stand_in, others[:size], again)
    return Fitted(_unit(own.astype(np.float32) @ rows), chance[..., len(concept) :])


def _unit(normals: Floats | Doubles) -> Floats:
    """Each row scaled to length one; rows of zeros stay."""
    lengths = np.linalg.norm(normals, axis=-1, keepdims=True)
    return np.asarray(normals / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class LayerScore:
    """The effect of a concept on the target in one layer."""

    layer: str
    positive: Tensor  # (runs, B) bool: whether going towards the concept raises the answer
    random: Tensor  # (sets, redrawn, B) bool: the same for random sets in its place
    p_value: float  # that a random set scores as the concept does

    @property
    def score(self) -> float:
        """The TCAV score: the share of pictures whose answer rises towards the concept, mean over runs."""
        return float(self.positive.double().mean())

    @property
    def chance(self) -> float:
        return float(self.random.double().mean())


def layer_score(layer: str, gradients: Tensor, fitted: Fitted, pool: Floats, against: Against = "runs") -> LayerScore:
    """Scores of all directions; those of random sets come from products of the pool's pictures and the gradients."""
    slopes = gradients.flatten(1).float().cpu().numpy()
    steep = slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    own = fitted.own @ steep.T
    lengths = np.sqrt(np.maximum(np.einsum("srn,nm,srm->sr", fitted.chance, products(pool), fitted.chance), 0))
    chance = fitted.chance @ (pool @ steep.T) / np.where(lengths > 0, lengths, 1.0)[..., None]
    if against == "sets":
        p_value = against_chance(float(own.mean(dtype=np.float64)), chance.mean((1, 2)))
    else:
        p_value = welch((own > 0).mean(1), (chance[:, 0] > 0).mean(1))
    return LayerScore(layer, torch.from_numpy(own > 0), torch.from_numpy(chance > 0), p_value)


def welch(one: Doubles, other: Doubles) -> float:
    """Welch's two-sided p value of equal means; without any spread it is 1 if they agree and 0 if not."""
    if np.ptp(one) == 0 and np.ptp(other) == 0:
        return 1.0 if one[0] == other[0] else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one family without spread is fine if the other has some
        return float(stats.ttest_ind(one, other, equal_var=False).pvalue)


def against_chance(value: float, chance: Doubles) -> float:
    """Two-sided p value of one more draw from the distribution of `chance` (Student's t); without any spread, 1 if it
    equals them and 0 if not.

    A rank test would need hundreds of random sets to reach any usual level.
    """
    spread = float(np.std(chance, ddof=1))
    off = value - float(np.mean(chance))
    if spread == 0:
        return 1.0 if off == 0 else 0.0
    count = len(chance)
    return float(2 * stats.t.sf(abs(off) / (spread * np.sqrt(1 + 1 / count)), count - 1))
