"""Variance components of scores: methods, pictures, pictures × methods, and luck (other seeds).

Paper: Searle, Casella & McCulloch 1992, "Variance Components", ch. 4 (the moment estimators of the two-way layout)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, scored


@dataclass(frozen=True)
class VarianceComponents:
    """Variances that add up to that of a score. A negative estimate is set to 0; `raw` has the estimates.

    With one seed luck cannot be separated from picture × method and is NaN.
    """

    method: float
    picture: float
    picture_method: float
    luck: float
    raw: tuple[float, float, float, float]
    n: int  # pictures that every method has a score for under every seed
    methods: int
    seeds: int

    def variance_of_difference(self, pictures: int) -> float:
        """Of the mean difference of two methods, if all are equally variable and pictures independent."""
        luck = 0.0 if np.isnan(self.luck) else self.luck / self.seeds
        return 2 * (self.picture_method + luck) / pictures


def variance_components(scores: ArrayLike) -> VarianceComponents:
    """The components of (pictures × methods × seeds) scores; pictures with a hole are left out."""
    values = scored(scores)
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3:
        raise BadInput(f"scores must be (pictures, methods, seeds), got shape {values.shape}.")
    y = values[~np.isnan(values).any(axis=(1, 2))]
    n, k, r = y.shape
    if n < 2 or k < 2 or r < 1:
        raise BadInput(
            f"variance components need two pictures that all of at least two methods have, got {n} pictures, "
            f"{k} methods and {r} seeds."
        )
    squares = _mean_squares(y)
    luck, both, pictures, methods = squares
    within = luck if r > 1 else 0.0
    raw = (float((methods - both) / (n * r)), float((pictures - both) / (k * r)), float((both - within) / r), luck)
    shown = [max(0.0, one) for one in raw[:3]]
    return VarianceComponents(shown[0], shown[1], shown[2], luck, raw, n, k, r)


def _mean_squares(y: FloatArray) -> tuple[float, float, float, float]:
    """Mean squares of luck (NaN with one seed), picture × method, pictures and methods."""
    n, k, r = y.shape
    cells = y.mean(axis=2)
    rows, columns, grand = cells.mean(axis=1, keepdims=True), cells.mean(axis=0, keepdims=True), cells.mean()
    luck = ((y - cells[:, :, None]) ** 2).sum() / (n * k * (r - 1)) if r > 1 else np.nan
    both = r * ((cells - rows - columns + grand) ** 2).sum() / ((n - 1) * (k - 1))
    pictures = k * r * ((rows - grand) ** 2).sum() / (n - 1)
    methods = n * r * ((columns - grand) ** 2).sum() / (k - 1)
    return float(luck), float(both), float(pictures), float(methods)
