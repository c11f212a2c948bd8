"""How well a score tells samples from originals: 0.5 and 0.95 where it cannot."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata


def auroc(originals: ArrayLike, samples: ArrayLike) -> float:
    """The chance that a sample scores higher than an original, ties counting half."""
    low, high = _finite(originals), _finite(samples)
    if not len(low) or not len(high):
        return float("nan")
    ranks = rankdata(np.concatenate([low, high]))[len(low) :]
    return float((ranks.sum() - len(high) * (len(high) + 1) / 2) / (len(low) * len(high)))


def fpr95(originals: ArrayLike, samples: ArrayLike) -> float:
    """The share of samples that pass where 95 % of the originals do: 0.95 if they cannot be told apart."""
    low, high = _finite(originals), _finite(samples)
    if not len(low) or not len(high):
        return float("nan")
    return float((high <= np.quantile(low, 0.95)).mean())


def _finite(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64).ravel()
    return array[np.isfinite(array)]
