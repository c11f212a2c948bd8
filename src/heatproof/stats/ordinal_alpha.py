"""Krippendorff's alpha for ordinal ratings: how far several raters put the same units in the same order.

Paper: Krippendorff, Content Analysis, 4th ed. 2019, chapter 12.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, scored


def ordinal_alpha(ratings: ArrayLike) -> float:
    """Alpha of a (raters x units) array, NaN = not rated: 1 for full agreement, 0 for ratings dealt at random.

    A unit rated once has no pair and counts for nothing; without two different ratings among the others alpha is 0 / 0
    and refused.
    """
    values = scored(ratings, "ratings")
    if values.ndim != 2:
        raise BadInput(f"ratings must be (raters, units), got shape {values.shape}.")
    pairable = values[:, (~np.isnan(values)).sum(axis=0) >= 2]
    if len(np.unique(pairable[~np.isnan(pairable)])) < 2:
        raise BadInput(
            "alpha is undefined: no two raters rate the same unit, or all ratings that can be paired are equal."
        )
    return float(weighted_alpha(values, np.ones((1, len(values))))[0])


def weighted_alpha(ratings: FloatArray, rater_weights: FloatArray) -> FloatArray:
    """(r,): ordinal alpha for each row of (r, raters) weights; NaN where it is 0 / 0.

    Pairs of a rating with itself (or its copies) are left out of observed and expected coincidences.
    """
    domain = np.unique(ratings[~np.isnan(ratings)])
    hot = (ratings[:, :, None] == domain).astype(np.float64)  # (raters, units, values)
    n, m, v = hot.shape
    flat = hot.reshape(n, m * v)
    counts = (rater_weights @ flat).reshape(-1, m, v)
    selves = (rater_weights**2 @ flat).reshape(-1, m, v)
    with np.errstate(invalid="ignore", divide="ignore"):
        raters, own = counts.sum(-1), selves.sum(-1)
        pairs = raters**2 - own  # ordered pairs of different ratings of one unit
        share = np.where(pairs > 0, raters / pairs, 0.0)
        used = (pairs > 0)[:, :, None]  # a unit rated once is not pairable
        observed = np.swapaxes(counts * share[:, :, None], 1, 2) @ counts
        observed -= _diagonal(np.einsum("ruc,ru->rc", selves, share))
        margin, own_margin = (counts * used).sum(1), (selves * used).sum(1)
        total = margin.sum(-1)
        expected = margin[:, :, None] * margin[:, None, :] - _diagonal(own_margin)
        expected /= ((total**2 - own_margin.sum(-1)) / total)[:, None, None]
        distance = _ordinal_distance(margin)
        return np.asarray(1 - (observed * distance).sum((1, 2)) / (expected * distance).sum((1, 2)), dtype=np.float64)


def _ordinal_distance(margin: FloatArray) -> FloatArray:
    """(r, v, v): squared number of ratings between two values, each end counted half."""
    middle = margin.cumsum(-1) - margin / 2
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2, dtype=np.float64)


def _diagonal(values: FloatArray) -> FloatArray:
    return np.asarray(values[:, :, None] * np.eye(values.shape[-1]), dtype=np.float64)
