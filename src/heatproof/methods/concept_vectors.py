"""Concept activation vectors: the direction in a layer that tells pictures with a concept from pictures without.

A score counts only if the concept's directions give other scores than directions between random sets do: two-sided
Welch test over at least ten of each.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.methods.taps import tap
from heatproof.types import Batch, Images, Model

Floats = NDArray[np.float32]


def activations(model: Model, images: Images, layer: str) -> Floats:
    """What a layer says about each picture, flattened: (B, features)."""
    nothing = torch.zeros(len(images), dtype=torch.int64, device=images.device)
    batch = Batch(images, nothing, tuple(str(i) for i in range(len(images))))
    return np.asarray(tap(model, batch, layer, "logit").activations.flatten(1).cpu().numpy(), dtype=np.float32)


def direction(concept: Floats, other: Floats, alpha: float, seed: int) -> Floats:
    """The unit normal of a linear classifier (hinge loss, SGD), pointing from the other set to the concept."""
    from sklearn.linear_model import SGDClassifier

    count = min(len(concept), len(other))  # balanced by leaving out the last of the larger set
    if count < 2:
        raise BadInput(
            f"a concept vector needs at least 2 pictures on either side, got {len(concept)} and {len(other)}"
        )
    values = np.concatenate([concept[:count], other[:count]])
    labels = np.repeat([1, 0], count)
    classifier = SGDClassifier(alpha=alpha, max_iter=1000, tol=1e-3, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged in 1000 rounds is still a direction
        classifier.fit(values, labels)
    normal = np.asarray(classifier.coef_[0], dtype=np.float32)
    length = float(np.linalg.norm(normal))
    return normal / np.float32(length) if length > 0 else normal


def directions(concept: Floats, pool: Floats, runs: int, size: int, alpha: float, seed: int) -> tuple[Floats, Floats]:
    """(runs, features) twice: concept against random sets, and random against random sets, sharing no picture.

    Every run draws two disjoint random sets from the pool; the first stands for the concept in the second family.
    """
    if runs < 2 or len(pool) < 2 * size:
        raise BadInput(
            f"{runs} random counterparts of {size} pictures need at least 2 runs and {2 * size} pictures without the "
            f"concept, got {len(pool)}"
        )
    # A linear classifier never leaves the span of its pictures: within it the fits are the same and hundreds of
    # times smaller than in the layer.
    span, inside = np.linalg.qr(np.concatenate([concept, pool]).T)
    concept, pool = np.split(np.ascontiguousarray(inside.T), [len(concept)])
    own, chance = [], []
    for run in range(runs):
        order = np.random.default_rng([seed, run]).permutation(len(pool))
        first, second = pool[order[:size]], pool[order[size : 2 * size]]
        own.append(direction(concept, second, alpha, run))
        chance.append(direction(first, second, alpha, run))
    return np.stack(own) @ span.T, np.stack(chance) @ span.T


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
