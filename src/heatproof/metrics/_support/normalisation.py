"""Normalisation: from a map in its own units to heat in [0, 1]. AUC-IoU still depends on this choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from heatproof.errors import BadInput, BadShape
from heatproof.traits import Rule, method_traits
from heatproof.types import Maps

RULES: tuple[Rule, ...] = get_args(Rule)
Choice: TypeAlias = Literal["by_method", "abs_p99", "abs_min_max", "positive", "positive_p99", "min_max", "rank"]

Row: TypeAlias = NDArray[np.float64]


def normalise(maps: Maps, rule: Rule) -> Maps:
    """Maps in [0, 1], float32, each by itself.

    - `abs_p99`: magnitudes, from their minimum to their 99th percentile, hotter pixels clipped to 1
    - `abs_min_max`: magnitudes, from minimum to maximum
    - `positive`: evidence for the target only, divided by its maximum
    - `positive_p99`: the same, divided by its 99th percentile and clipped
    - `min_max`: signed values, from minimum to maximum, so that zero may lie anywhere
    - `rank`: how many pixels are colder, ties sharing their mean rank; then from minimum to maximum

    A map that is constant (after dropping the sign, or the negative part) becomes 0 everywhere. Where the
    99th percentile is the minimum (a map that is hot on less than 1 % of its pixels), the maximum takes its
    place.
    """
    if rule not in RULES:
        raise BadInput(f"rule must be one of {', '.join(RULES)}, got {rule!r}")
    if maps.ndim != 3:
        raise BadShape(f"maps must have shape (batch, height, width), got {tuple(maps.shape)}")
    values = maps.detach().float().cpu().flatten(1).numpy()
    bad = np.flatnonzero(~np.isfinite(values).all(1))
    if len(bad):
        raise BadInput(f"maps must be finite to be normalised, got NaN or infinity in map {bad[0]}")
    make = _MAKERS[rule]
    heat = np.empty_like(values)
    for row, out in zip(values, heat, strict=True):
        # float64: the range of a float32 map may itself be too large for float32
        out[:] = make(row.astype(np.float64))
    return torch.from_numpy(heat).view(maps.shape).to(maps.device)


def rule_of(method: Any, choice: Choice) -> Rule:
    """The rule for a method's maps: the one chosen for all, or the one the method declares."""
    return method_traits(method).normalisation if choice == "by_method" else choice


def _stretched(values: Row, low: float, high: float) -> Row:
    if high <= low:
        high = float(values.max())
    if high <= low:
        return np.zeros_like(values)
    return np.clip((values - low) / (high - low), 0, 1)


def _p99(values: Row) -> float:
    """numpy.percentile(values, 99); a whole sort is faster than its partition."""
    ascending = np.sort(values)
    below, share = divmod(0.99 * (len(values) - 1), 1.0)
    first = int(below)
    second = min(first + 1, len(values) - 1)
    return float(ascending[first] + share * (ascending[second] - ascending[first]))


def _abs_p99(values: Row) -> Row:
    values = np.abs(values)
    return _stretched(values, float(values.min()), _p99(values))


def _abs_min_max(values: Row) -> Row:
    return _min_max(np.abs(values))


def _positive(values: Row) -> Row:
    return _stretched(values.clip(min=0), 0.0, float(values.max()))


def _positive_p99(values: Row) -> Row:
    values = values.clip(min=0)
    return _stretched(values, 0.0, _p99(values))


def _min_max(values: Row) -> Row:
    return _stretched(values, float(values.min()), float(values.max()))


def _rank(values: Row) -> Row:
    return _min_max(np.asarray(rankdata(values)))


_MAKERS: dict[Rule, Callable[[Row], Row]] = {
    "abs_p99": _abs_p99,
    "abs_min_max": _abs_min_max,
    "positive": _positive,
    "positive_p99": _positive_p99,
    "min_max": _min_max,
    "rank": _rank,
}
