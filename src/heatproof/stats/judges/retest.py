"""How far the order of methods stands on pictures, seeds, and settings of the metric and of the methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from heatproof.stats.bootstrap import FloatArray, Interval
from heatproof.stats.judges.evidence import Evidence
from heatproof.stats.judges.sums import RESAMPLES, nanmean, ratio, spearman
from heatproof.stats.ordinal_alpha import weighted_alpha
from heatproof.stats.variance_components import VarianceComponents, variance_components

SPLITS = 200
GOOD = 0.9  # reliability that pictures are counted for


@dataclass(frozen=True)
class Retest:
    """How far the order of methods stands on something."""

    components: VarianceComponents | None  # of real methods and one noise, under two seeds
    shares: Mapping[str, float]  # of a score's variance, by where it comes from; empty without components
    reliability: float  # of the order of methods, from the components: 1 is perfect
    pictures_needed: float  # for a reliability of 0.9
    alpha: Interval  # Krippendorff's, of the ranks that pictures give methods
    split_half: float  # mean rank correlation of the order on one half of the pictures with that on the other
    settings: Mapping[str, float]  # by other setting: rank correlation of the order with that of this one
    forms: Mapping[str, float]  # by method under another setting: its skill less the method's own, of the range
    look: float  # share of the variance on a picture that is due to the map and not to the seed


def retest(found: Evidence, gap: float) -> Retest:
    """All of it; pictures on which a score is missing are left out of the components."""
    nan = float("nan")
    seeds = found.retest  # (seeds, maps, pictures)
    whole = ~np.isnan(seeds).any((0, 1))
    kept = seeds[:, :, whole]
    components, shares, reliability, needed, look = None, dict[str, float](), nan, nan, nan
    if kept.shape[2] >= 2:
        components = variance_components(kept.transpose(2, 1, 0))
        specific = components.picture_method + components.luck / components.seeds
        reliability = ratio(components.method, components.method + specific / components.n)
        needed = ratio(GOOD / (1 - GOOD) * specific, components.method)
        mapped = components.method + components.picture_method
        look = ratio(mapped, mapped + components.luck)
        others = [rows[:, whole] for rows in found.settings.values()]
        shares = _shares(components, settings_variance(kept[0], others), forms_variance(found))
    here = nanmean(seeds[0], 1)
    return Retest(
        components,
        shares,
        reliability,
        needed,
        ranks_alpha(kept[0]),
        split_half(kept[0]),
        {name: spearman(here, nanmean(rows, 1)) for name, rows in found.settings.items()},
        {name: ratio(float(nanmean(row - base)), gap) for name, row, base in _forms(found)},
        look,
    )


def _shares(components: VarianceComponents, settings: float, forms: float) -> dict[str, float]:
    parts = {
        "method": components.method,
        "picture": components.picture,
        "picture × method": components.picture_method,
        "metric's setting": settings,
        "method's setting": forms,
        "luck": components.luck,
    }
    total = float(np.nansum(list(parts.values())))
    return {name: ratio(part, total) for name, part in parts.items()}


def settings_variance(here: FloatArray, others: Sequence[FloatArray]) -> float:
    """Of the means of methods between settings of the metric, in the variance of the metric's own scores.

    Settings have scales of their own, so each is standardised over methods and pictures, and turned back at the end.
    NaN without another setting.
    """
    levels = [one for one in (here, *others) if one.size and not np.isnan(one).any() and float(one.std()) > 0]
    if len(levels) < 2 or len(here) < 2 or not float(here.std()) > 0:
        return float("nan")
    means = np.stack([(one - one.mean()).mean(1) / one.std() for one in levels])  # (settings, methods)
    left = means - means.mean(0) - means.mean(1, keepdims=True) + means.mean()
    freedom = (len(means) - 1) * (means.shape[1] - 1)
    return float(np.square(left).sum() / freedom * here.var())


def forms_variance(found: Evidence) -> float:
    """Of the mean scores of a method between two of its own settings; NaN where no method has another."""
    gaps = [float(nanmean(row - base)) for _, row, base in _forms(found)]
    known = [one for one in gaps if np.isfinite(one)]
    return float(np.mean(np.square(known)) / 2) if known else float("nan")


def _forms(found: Evidence) -> list[tuple[str, FloatArray, FloatArray]]:
    """Each method under another setting: its name, its scores, and those under its own."""
    real = found.named("real")
    pairs = zip(found.shown, found.scores, strict=True)
    return [(one.name, row, real[one.form_of]) for one, row in pairs if one.kind == "variant" and one.form_of in real]


def ranks_alpha(scores: FloatArray) -> Interval:
    """Krippendorff's alpha of the ranks that pictures give the rows of (maps, pictures), bootstrapped over pictures."""
    maps, n = scores.shape
    if n < 2 or maps < 2:
        return Interval(float("nan"), float("nan"), float("nan"), n, 0)
    ranks = stats.rankdata(scores, axis=0).T
    dice = np.random.default_rng(0)
    weights = dice.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
    estimate = float(weighted_alpha(ranks, np.ones((1, n)))[0])
    drawn = weighted_alpha(ranks, weights)
    drawn = drawn[np.isfinite(drawn)]
    low, high = (float(one) for one in np.quantile(drawn, [0.025, 0.975])) if len(drawn) else (np.nan, np.nan)
    return Interval(estimate, low, high, n, 0, resamples=RESAMPLES)


def split_half(scores: FloatArray) -> float:
    """Mean Spearman correlation of the order of maps on random halves of the pictures; NaN below four."""
    n = scores.shape[1]
    if n < 4:
        return float("nan")
    dice, found = np.random.default_rng(0), []
    for _ in range(SPLITS):
        drawn = dice.permutation(n)
        found.append(spearman(scores[:, drawn[: n // 2]].mean(1), scores[:, drawn[n // 2 :]].mean(1)))
    return float(np.mean(found))
