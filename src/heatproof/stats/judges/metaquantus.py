"""MetaQuantus's two tests: does a metric hold still under minor disturbances, and does it react to disruptive ones?

Each is answered twice: do scores of a method change (intra-consistency, IAC), and does the order of methods
(inter-consistency, IEC)? As published, except that "worse" follows the metric's direction; the published code counts
"larger" for all. Nothing here refers to a truth: beside it stands what judges earn that look at no map.

Paper: Hedström et al. 2023, "The Meta-Evaluation Problem in Explainable AI: Identifying Reliable Estimators with
MetaQuantus"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from heatproof.stats.bootstrap import FloatArray
from heatproof.stats.judges.evidence import Disturbed, Evidence, Size, Trial


@dataclass(frozen=True)
class MetaConsistency:
    """The four numbers of one kind of disturbance; NaN where no picture was left to judge by."""

    disturbed: Disturbed
    iac_noise: float  # mean p value of scores before and after minor disturbances
    iac_adversary: float  # mean 1 - p after disruptive ones
    iec_noise: float  # share of ranks that the same method holds after minor ones
    iec_adversary: float  # share of scores that are worse after disruptive ones
    overall: float  # the mean of the four
    constant: float = 0.5  # what a constant earns,
    noise: float = 0.5  # and what pure noise does
    confidence: float = 1.0  # and at most the model's confidence, which no map has a part in


def meta_consistency(found: Evidence) -> tuple[MetaConsistency, ...]:
    """By pictures and by weights; empty if nothing was disturbed."""
    before = found.rows("real")
    kinds: tuple[Disturbed, ...] = ("input", "weights")
    return tuple(_of(before, [one for one in found.trials if one.what == what], what) for what in kinds if found.trials)


def _of(before: FloatArray, trials: Sequence[Trial], what: Disturbed) -> MetaConsistency:
    minor, disruptive = _pairs(before, trials, "minor"), _pairs(before, trials, "disruptive")
    numbers = (
        _mean([p_value(one, other) for first, then in minor for one, other in zip(first, then, strict=True)]),
        _mean([1 - p_value(one, other) for first, then in disruptive for one, other in zip(first, then, strict=True)]),
        _mean([same_ranks(first, then) for first, then in minor]),
        _mean([float((then < first).mean()) for first, then in disruptive if first.size]),
    )
    return MetaConsistency(what, *numbers, overall=_mean(numbers), noise=(1.5 + 1 / max(1, len(before))) / 4)


def _pairs(before: FloatArray, trials: Sequence[Trial], size: Size) -> list[tuple[FloatArray, FloatArray]]:
    """Scores before and after, of the pictures whose class is still the same (minor), or is another (disruptive)."""
    found = []
    for trial in (one for one in trials if one.size == size):
        kept = (trial.changed == (size == "disruptive")) & ~np.isnan(before).any(0) & ~np.isnan(trial.scores).any(0)
        found.append((before[:, kept], trial.scores[:, kept]))
    return found


def p_value(before: FloatArray, after: FloatArray) -> float:
    """Two-sided, of Wilcoxon's signed ranks with zeros split; 1 if nothing changed, NaN without pictures."""
    if len(before) == 0:
        return float("nan")
    if bool((before == after).all()):
        return 1.0
    return float(stats.wilcoxon(before, after, zero_method="zsplit", method="approx").pvalue)


def same_ranks(before: FloatArray, after: FloatArray) -> float:
    """The share of ranks, over pictures, that the same method holds; ties fall in the order of the methods."""
    if before.size == 0:
        return float("nan")
    return float((before.argsort(0, kind="stable") == after.argsort(0, kind="stable")).mean())


def _mean(numbers: Sequence[float]) -> float:
    known = [one for one in numbers if not np.isnan(one)]
    return float(np.mean(known)) if known else float("nan")
