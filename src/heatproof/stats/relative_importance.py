"""Statistics of relative importance: checks of the design, and how closely one series follows another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from heatproof.errors import BadInput

MARGIN = 0.05  # accuracy a relation may be off by before it counts as violated


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with its Fisher interval; NaN where a series does not vary, or by less than a double can square."""

    r: float
    low: float
    high: float
    n: int


def pearson(one: Sequence[float], other: Sequence[float], level: float = 0.95) -> Correlation:
    """r of two series and the interval of Fisher's z; three points and fewer have none."""
    if len(one) != len(other):
        raise BadInput(f"two series must be of one length, got {len(one)} and {len(other)}.")
    pairs = np.array([(a, b) for a, b in zip(one, other, strict=True) if math.isfinite(a) and math.isfinite(b)])
    nan, n = float("nan"), len(pairs)
    if n < 3 or float(np.ptp(pairs[:, 0])) == 0 or float(np.ptp(pairs[:, 1])) == 0:
        return Correlation(nan, nan, nan, n)
    with np.errstate(all="ignore"):
        r = float(np.clip(np.corrcoef(pairs.T)[0, 1], -1, 1))
    if math.isnan(r):
        return Correlation(nan, nan, nan, n)
    if n < 4 or abs(r) == 1:
        return Correlation(r, r if abs(r) == 1 else nan, r if abs(r) == 1 else nan, n)
    half = float(stats.norm.ppf((1 + level) / 2)) / math.sqrt(n - 3)
    z = math.atanh(r)
    return Correlation(r, math.tanh(z - half), math.tanh(z + half), n)


def violations(accuracy: Mapping[str, Mapping[str, float | None]], classes: int, n: int) -> list[str]:
    """The assumptions that the measured accuracies violate, in sentences; `unknown` has the unmeasured ones.

    `accuracy` holds accuracies on `composite` and `without` pictures, and on objects alone (`grey`), for the roles
    `object`, `scene` and `scene_only`.
    """
    chance = 1 / max(classes, 1)
    room = max(MARGIN, 2 * math.sqrt(chance * (1 - chance) / max(n, 1)))
    enough = 0.5 + chance / 2
    measured = _Accuracies(accuracy)
    sentences = []
    for role, what in (("object", "composite"), ("scene", "composite"), ("scene_only", "without")):
        if measured(role, what) < enough:
            shown = "the pictures" if what == "composite" else "the scenes without objects"
            sentences.append(
                f"{_NAMED[role]} names only {measured(role, what):.0%} of {shown} correctly: its maps say little."
            )
    if measured("object", "without") > chance + room:
        share = measured("object", "without")
        sentences.append(
            f"The object model names {share:.0%} of the objects that are not there (chance is {chance:.0%})."
        )
    if measured("object", "grey") < enough:
        share = measured("object", "grey")
        sentences.append(f"The object model names only {share:.0%} of the objects correctly when they stand alone.")
    for role in ("scene", "scene_only"):
        if measured(role, "grey") > chance + room:
            share = measured(role, "grey")
            sentences.append(
                f"{_NAMED[role]} names {share:.0%} of the scenes by the object alone (chance is {chance:.0%})."
            )
    drop = measured("scene", "composite") - measured("scene", "without")
    if drop > MARGIN:
        sentences.append(f"The scene model loses {100 * drop:.0f} points of accuracy when objects are removed.")
    return sentences


def unknown(accuracy: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """The accuracies that the design assumes and that were not measured, in words."""
    measured = _Accuracies(accuracy)
    return [
        f"{_NAMED[role][0].lower()}{_NAMED[role][1:]} {words}"
        for role in accuracy
        for what, words in _SHOWN.items()
        if (role, what) != ("scene_only", "composite")
        and math.isnan(measured(role, what))  # no assumption rests on that one
    ]


_NAMED = {"object": "The object model", "scene": "The scene model", "scene_only": "The scene-only model"}
_SHOWN = {"composite": "with objects on scenes", "without": "with scenes alone", "grey": "with objects alone"}


@dataclass(frozen=True)
class _Accuracies:
    """Accuracies by role and pictures; NaN where none was measured, which is neither above nor below any limit."""

    accuracy: Mapping[str, Mapping[str, float | None]]

    def __call__(self, role: str, what: str) -> float:
        value = self.accuracy.get(role, {}).get(what)
        return math.nan if value is None else value  # stored runs have null in place of NaN
