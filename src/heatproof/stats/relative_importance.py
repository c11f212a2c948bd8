"""What relative importance adds up to: a-priori relations, and how well a series follows another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

MARGIN = 0.05  # accuracy a relation may be off by before it counts as violated


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with its Fisher interval; NaN where a series does not vary."""

    r: float
    low: float
    high: float
    n: int


def pearson(one: Sequence[float], other: Sequence[float], level: float = 0.95) -> Correlation:
    """r of two series and the interval of Fisher's z; three points and fewer have none."""
    pairs = np.array([(a, b) for a, b in zip(one, other, strict=True) if math.isfinite(a) and math.isfinite(b)])
    nan, n = float("nan"), len(pairs)
    if n < 3 or float(np.ptp(pairs[:, 0])) == 0 or float(np.ptp(pairs[:, 1])) == 0:
        return Correlation(nan, nan, nan, n)
    r = float(np.clip(np.corrcoef(pairs.T)[0, 1], -1, 1))
    if n < 4 or abs(r) == 1:
        return Correlation(r, r if abs(r) == 1 else nan, r if abs(r) == 1 else nan, n)
    half = float(stats.norm.ppf((1 + level) / 2)) / math.sqrt(n - 3)
    z = math.atanh(r)
    return Correlation(r, math.tanh(z - half), math.tanh(z + half), n)


def violations(accuracy: Mapping[str, Mapping[str, float]], classes: int, n: int) -> list[str]:
    """What is not as the design presumes, in sentences; empty if all is well.

    `accuracy` holds accuracies on `composite` and `without` pictures for the roles `object`, `scene`, `scene_only`.
    """
    chance = 1 / max(classes, 1)
    room = max(MARGIN, 2 * math.sqrt(chance * (1 - chance) / max(n, 1)))
    said = []
    for role in ("object", "scene"):
        if role in accuracy and accuracy[role]["composite"] < 0.5 + chance / 2:
            share = accuracy[role]["composite"]
            said.append(f"The {role} model names only {share:.0%} of the pictures rightly: its maps say little.")
    if "object" in accuracy and accuracy["object"]["without"] > chance + room:
        share = accuracy["object"]["without"]
        said.append(f"The object model names {share:.0%} of the objects that are not there (chance is {chance:.0%}).")
    if "scene" in accuracy:
        drop = accuracy["scene"]["composite"] - accuracy["scene"]["without"]
        if drop > MARGIN:
            said.append(f"The scene model loses {100 * drop:.0f} points of accuracy when objects are removed.")
    return said
