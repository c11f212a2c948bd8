"""What relative importance adds up to: a-priori relations, and how well a series follows another."""

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


def violations(accuracy: Mapping[str, Mapping[str, float]], classes: int, n: int) -> list[str]:
    """What is known not to be as the design presumes, in sentences; see `unknown` for what was not measured.

    `accuracy` holds accuracies on `composite` and `without` pictures, and on objects alone (`grey`), for the roles
    `object`, `scene` and `scene_only`.
    """
    chance = 1 / max(classes, 1)
    room = max(MARGIN, 2 * math.sqrt(chance * (1 - chance) / max(n, 1)))
    enough = 0.5 + chance / 2
    told = _Told(accuracy)
    said = []
    for role, what in (("object", "composite"), ("scene", "composite"), ("scene_only", "without")):
        if told(role, what) < enough:
            shown = "the pictures" if what == "composite" else "the scenes without objects"
            said.append(f"{_NAMED[role]} names only {told(role, what):.0%} of {shown} rightly: its maps say little.")
    if told("object", "without") > chance + room:
        share = told("object", "without")
        said.append(f"The object model names {share:.0%} of the objects that are not there (chance is {chance:.0%}).")
    if told("object", "grey") < enough:
        share = told("object", "grey")
        said.append(f"The object model names only {share:.0%} of the objects rightly when they stand alone.")
    for role in ("scene", "scene_only"):
        if told(role, "grey") > chance + room:
            share = told(role, "grey")
            said.append(f"{_NAMED[role]} names {share:.0%} of the scenes by the object alone (chance is {chance:.0%}).")
    drop = told("scene", "composite") - told("scene", "without")
    if drop > MARGIN:
        said.append(f"The scene model loses {100 * drop:.0f} points of accuracy when objects are removed.")
    return said


def unknown(accuracy: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What the design presumes and nobody could measure, in words; empty if all was measured."""
    told = _Told(accuracy)
    return [
        f"{_NAMED[role][0].lower()}{_NAMED[role][1:]} {words}"
        for role in accuracy
        for what, words in _SHOWN.items()
        if (role, what) != ("scene_only", "composite") and math.isnan(told(role, what))  # that one presumes nothing
    ]


_NAMED = {"object": "The object model", "scene": "The scene model", "scene_only": "The scene-only model"}
_SHOWN = {"composite": "with objects on scenes", "without": "with scenes alone", "grey": "with objects alone"}


@dataclass(frozen=True)
class _Told:
    """Accuracies by role and pictures; NaN, which is neither above nor below anything, where none was measured."""

    accuracy: Mapping[str, Mapping[str, float]]

    def __call__(self, role: str, what: str) -> float:
        value = self.accuracy.get(role, {}).get(what)
        return math.nan if value is None else value  # stored runs have null for what is no number
