"""Does a score put the truth before noise, does it fall with the dose of a degradation, and what is its range?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from heatproof.stats.bootstrap import FloatArray, Interval
from heatproof.stats.judges.evidence import GRADED, Evidence, Kind
from heatproof.stats.judges.sums import mean_of, moments, nanmean, ratio, spearman

POWER = 1.96 + 0.84  # standard errors that a difference must have to be found in 80 of 100 audits


@dataclass(frozen=True)
class Order:
    """How often one map scores better than another, ties counted half; 0.5 is chance. NaN where a map has no part."""

    truth_over_noise: Interval
    noise_over_inverse: Interval
    truth_over_inverse: Interval
    real_over_noise: Mapping[str, Interval]  # by method


@dataclass(frozen=True)
class Dose:
    """How a score answers to more and more of one degradation."""

    how: Kind
    doses: tuple[float, ...]  # from 0, which is the truth itself
    means: tuple[float, ...]  # of the score, larger is better
    fall: Interval  # mean over pictures of Spearman's correlation of less degradation with the score; 1 is best
    # The largest significant rise of the mean from a dose to a larger one, as a share of the range; 0: none.
    rise: float
    detectable: float  # the smallest dose found in 80 of 100 audits with as many pictures; NaN if none is


@dataclass(frozen=True)
class Span:
    """The range of a metric, and how much of it real methods use."""

    chance: Interval  # mean score of noise
    declared_chance: float | None
    ceiling: Interval  # mean score of the truth
    standard_errors: float  # between the two
    skill: Mapping[str, float]  # by method: 0 is chance, 1 the truth
    used: float  # largest less smallest skill of a real method


def wins(first: FloatArray, second: FloatArray) -> FloatArray:
    """Per picture: the share of (rows of one, rows of the other) that the first wins, ties counted half."""
    one, other = np.atleast_2d(first)[:, None], np.atleast_2d(second)[None]
    won = np.where(one == other, 0.5, np.where(one > other, 1.0, 0.0))
    return nanmean(np.where(np.isnan(one) | np.isnan(other), np.nan, won).reshape(-1, won.shape[-1]), 0)


def order(found: Evidence) -> Order:
    """Truth, noise, the inverse where there is one, and real methods against noise."""
    truth, noise, inverse = found.rows("truth"), found.rows("noise"), found.rows("inverse")
    return Order(
        mean_of(wins(truth, noise), share=True),
        mean_of(wins(noise, inverse), share=True),
        mean_of(wins(truth, inverse), share=True),
        {name: mean_of(wins(scores, noise), share=True) for name, scores in found.named("real").items()},
    )


def doses(found: Evidence, gap: float) -> tuple[Dose, ...]:
    """Of every degradation that the metric was shown."""
    kinds = {one.kind for one in found.shown}
    return tuple(_dose(found, how, gap) for how in GRADED if how in kinds)


def _dose(found: Evidence, how: Kind, gap: float) -> Dose:
    at = [0, *(place for place, one in enumerate(found.shown) if one.kind == how)]
    given, scores = np.array([found.shown[place].dose for place in at]), found.scores[at]
    falls = [spearman(-given, column) for column in scores.T]
    means = tuple(float(one) for one in nanmean(scores, 1))
    return Dose(how, tuple(given.tolist()), means, mean_of(falls), _rise(scores, gap), _detectable(given, scores))


def _rise(scores: FloatArray, gap: float) -> float:
    """The largest rise of the mean with the dose that is significant at 5 % over all pairs, by Bonferroni."""
    pairs = [(a, b) for a in range(len(scores)) for b in range(a + 1, len(scores))]
    largest = 0.0
    for a, b in pairs:
        rise, error, n = moments(scores[b] - scores[a])
        if n >= 2 and rise > stats.t.ppf(1 - 0.025 / len(pairs), n - 1) * error and rise > 0:
            largest = max(largest, rise)
    return largest / abs(gap) if gap else 0.0


def _detectable(given: FloatArray, scores: FloatArray) -> float:
    """From this dose on, the mean falls by enough standard errors."""
    least = float("nan")
    for dose, row in zip(given[:0:-1], scores[:0:-1], strict=True):
        fall, error, n = moments(scores[0] - row)
        if n < 2 or fall <= 0 or fall < POWER * error:
            break
        least = float(dose)
    return least


def span(found: Evidence, gap: float) -> Span:
    """Chance, ceiling, and the real methods between them."""
    truth, noise = found.rows("truth")[0], nanmean(found.rows("noise"), 0)
    difference, error, n = moments(truth - noise)
    errors = difference / error if n >= 2 and error > 0 else (np.inf if difference else 0.0)
    base = float(nanmean(noise))
    skill = {name: ratio(float(nanmean(row)) - base, gap) for name, row in found.named("real").items()}
    known = [one for one in skill.values() if np.isfinite(one)]
    used = max(known) - min(known) if known else float("nan")
    return Span(mean_of(noise), found.chance, mean_of(truth), float(errors), skill, used)
