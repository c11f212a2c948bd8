"""AUROC and FPR95 of a score that separates samples from originals, and their values by chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, rankdata

from heatproof.errors import BadInput


def auroc(originals: ArrayLike, samples: ArrayLike) -> float:
    """The chance that a sample scores higher than an original, ties counting half."""
    low, high = _finite(originals), _finite(samples)
    if not len(low) or not len(high):
        return float("nan")
    ranks = rankdata(np.concatenate([low, high]))[len(low) :]
    return float((ranks.sum() - len(high) * (len(high) + 1) / 2) / (len(low) * len(high)))


def fpr95(originals: ArrayLike, samples: ArrayLike) -> float:
    """The share of samples that pass where 95 % of the originals do.

    0.95 if the two are indistinguishable and many; with fewer originals the border is lower, see `alike`.
    """
    low, high = _finite(originals), _finite(samples)
    if not len(low) or not len(high):
        return float("nan")
    return float((high <= np.quantile(low, 0.95)).mean())


@dataclass(frozen=True)
class Alike:
    """Values for n originals and n indistinguishable samples: mean FPR95, and the range of 95 % of outcomes."""

    fpr95: float
    fpr95_range: tuple[float, float]
    auroc_range: tuple[float, float]


@lru_cache
def alike(n: int, draws: int = 100_000, seed: int = 0) -> Alike:
    """Simulated for scores of one normal distribution; its form matters only between two neighbouring originals.

    The 95 % border lies between two order statistics of the originals, which are drawn directly, so that many
    pictures take no longer than few. AUROC is 0.5 on average; its range is the normal one of the rank-sum.
    """
    if n < 1:
        raise BadInput(f"alike needs at least one picture, got {n}.")
    dice = np.random.default_rng(seed)
    below = int(0.95 * (n - 1))
    between = 0.95 * (n - 1) - below
    lower = dice.beta(below + 1, n - below, draws)
    upper = lower + (1 - lower) * dice.beta(1, n - below - 1, draws) if between else lower
    passing = norm.cdf((1 - between) * norm.ppf(lower) + between * norm.ppf(upper))
    low, high = np.quantile(dice.binomial(n, passing) / n, [0.025, 0.975])
    half = 1.96 * math.sqrt((2 * n + 1) / 12) / n
    return Alike(float(passing.mean()), (float(low), float(high)), (max(0.0, 0.5 - half), min(1.0, 0.5 + half)))


def _finite(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64).ravel()
    return array[np.isfinite(array)]
