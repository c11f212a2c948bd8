"""The judge's card: what an audit found out about one metric, as named numbers with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from heatproof.audit.judges.evidence import Evidence, graded
from heatproof.audit.judges.graded_maps import GRADED
from heatproof.audit.judges.metaquantus import MetaConsistency, meta_consistency
from heatproof.audit.judges.price import Passes
from heatproof.stats.bootstrap import FloatArray, Interval, interval
from heatproof.stats.ordinal_alpha import weighted_alpha
from heatproof.stats.variance_components import VarianceComponents, variance_components
from heatproof.traits import Measures

RESAMPLES = 500
POWER = 1.96 + 0.84  # standard errors that a difference must have to be found in 80 of 100 audits
SPLITS = 200
GOOD = 0.9  # reliability that pictures are counted for

Rule: TypeAlias = Literal["no_score", "constant", "order", "dose", "reliability", "blind"]


@dataclass(frozen=True)
class Flag:
    """A rule that a metric breaks, and the numbers that say so."""

    rule: Rule
    reason: str


@dataclass(frozen=True)
class Order:
    """How often one map scores better than another, ties counted half; 0.5 is chance."""

    truth_over_noise: Interval
    noise_over_inverse: Interval
    truth_over_inverse: Interval
    real_over_noise: Mapping[str, Interval]  # by method


@dataclass(frozen=True)
class Dose:
    """How a score answers to more and more of one degradation."""

    how: str
    doses: tuple[float, ...]  # from 0, which is the truth itself
    means: tuple[float, ...]  # of the score, larger is better
    fall: Interval  # mean over pictures of Spearman's correlation of less degradation with the score; 1 is best
    rise: (
        float  # the largest significant rise of the mean from a dose to a larger one, as a share of the range; 0: none
    )
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


@dataclass(frozen=True)
class Retest:
    """How far the order of methods stands on something."""

    components: VarianceComponents | None  # of real methods and one noise, under two seeds
    reliability: float  # of the order of methods, from the components: 1 is perfect
    pictures_needed: float  # for a reliability of 0.9
    alpha: Interval  # Krippendorff's, of the ranks that pictures give methods
    split_half: float  # mean rank correlation of the order on one half of the pictures with that on the other
    settings: Mapping[str, float]  # by other setting: rank correlation of the order with that of this one
    setting_share: float  # of the variance specific to a method that is due to settings; NaN without any
    look: float  # share of the variance on a picture that is due to the map and not to the seed


@dataclass(frozen=True)
class BlindMaps:
    """What maps earn that see no model."""

    skill: Mapping[str, float]
    best: str
    behind_truth: Interval  # the truth's score less that of the best blind map, in units of the range
    behind_real: Interval  # likewise of the best real method


@dataclass(frozen=True)
class Agreement:
    """With the known truth, and with metrics that measure the same."""

    truth: Interval  # mean over pictures of Kendall's tau with the true closeness of all degraded maps
    family: Mapping[str, float]  # by metric: Spearman's correlation of the mean scores of all maps


@dataclass(frozen=True)
class Cost:
    """What a judgement costs and yields."""

    passes: Passes
    seconds: float  # of processor time, for the whole audit of this metric
    information: float  # squared standardised difference of truth and noise on one picture
    per_pass: float  # information per pass; NaN for a metric without passes


@dataclass(frozen=True)
class JudgeCard:
    """One metric on trial, on one model and data set."""

    metric: str
    measures: Measures
    higher_is_better: bool
    pictures: int
    scored: float  # share of all maps and pictures that have a score
    judged_by_truth: bool  # whether order, dose and blind maps count for the verdict
    order: Order
    doses: tuple[Dose, ...]
    span: Span
    retest: Retest
    metaquantus: tuple[MetaConsistency, ...]
    blind: BlindMaps
    agreement: Agreement
    cost: Cost
    flags: tuple[Flag, ...] = ()

    @property
    def verdict(self) -> Literal["holds", "flagged", "description"]:
        if self.measures in ("description", "pictures", "chance"):
            return "description"
        return "flagged" if self.flags else "holds"


def judge_card(found: Evidence) -> JudgeCard:
    """All numbers of a card, without flags and family: see `rules.flags` and `with_families`."""
    truth, noise, real = found.rows("truth")[0], found.rows("noise"), found.rows("real")
    names = [one.name for one in found.shown if one.kind == "real"]
    chance, ceiling = _nanmean(noise, 0), truth
    gap = float(_nanmean(ceiling - chance))
    return JudgeCard(
        metric=found.metric,
        measures=found.measures,
        higher_is_better=found.higher_is_better,
        pictures=found.scores.shape[1],
        scored=float(np.isfinite(found.scores).mean()),
        judged_by_truth=found.measures in ("faithfulness", "localisation"),
        order=_order(found, names),
        doses=tuple(_dose(found, how, gap) for how in GRADED),
        span=_span(found, names, gap),
        retest=_retest(found),
        metaquantus=meta_consistency(found),
        blind=_blind(found, real, gap),
        agreement=Agreement(mean_of(_taus(found)), {}),
        cost=_cost(found, truth, chance),
    )


def mean_of(values: ArrayLike, *, share: bool = False) -> Interval:
    """The mean over pictures and its bootstrap interval, expanded for few pictures."""
    return interval(values, resamples=RESAMPLES, kind="expanded", share=share)


def wins(first: FloatArray, second: FloatArray) -> FloatArray:
    """Per picture: the share of (rows of one, rows of the other) that the first wins, ties counted half."""
    one, other = np.atleast_2d(first)[:, None], np.atleast_2d(second)[None]
    won = np.where(one == other, 0.5, np.where(one > other, 1.0, 0.0))
    return _nanmean(np.where(np.isnan(one) | np.isnan(other), np.nan, won).reshape(-1, won.shape[-1]), 0)


def _order(found: Evidence, names: Sequence[str]) -> Order:
    truth, noise, inverse = found.rows("truth"), found.rows("noise"), found.rows("inverse")
    real = dict(zip(names, found.rows("real"), strict=True))
    return Order(
        mean_of(wins(truth, noise), share=True),
        mean_of(wins(noise, inverse), share=True),
        mean_of(wins(truth, inverse), share=True),
        {name: mean_of(wins(scores, noise), share=True) for name, scores in real.items()},
    )


def _dose(found: Evidence, how: str, gap: float) -> Dose:
    at = [0, *(place for place, one in enumerate(found.shown) if one.kind == how)]
    doses, scores = np.array([found.shown[place].dose for place in at]), found.scores[at]
    falls = [spearman(-doses, column) for column in scores.T]
    means = tuple(float(one) for one in _nanmean(scores, 1))
    return Dose(how, tuple(doses.tolist()), means, mean_of(falls), _rise(scores, gap), _detectable(doses, scores))


def _rise(scores: FloatArray, gap: float) -> float:
    """The largest rise of the mean with the dose that is significant at 5 % over all pairs, by Bonferroni."""
    pairs = [(a, b) for a in range(len(scores)) for b in range(a + 1, len(scores))]
    largest = 0.0
    for a, b in pairs:
        rise, error, n = _moments(scores[b] - scores[a])
        if n >= 2 and rise > stats.t.ppf(1 - 0.025 / len(pairs), n - 1) * error and rise > 0:
            largest = max(largest, rise)
    return largest / abs(gap) if gap else 0.0


def _detectable(doses: FloatArray, scores: FloatArray) -> float:
    """From this dose on, the mean falls by enough standard errors."""
    least = float("nan")
    for dose, row in zip(doses[:0:-1], scores[:0:-1], strict=True):
        fall, error, n = _moments(scores[0] - row)
        if n < 2 or fall <= 0 or fall < POWER * error:
            break
        least = float(dose)
    return least


def _span(found: Evidence, names: Sequence[str], gap: float) -> Span:
    truth, noise = found.rows("truth")[0], _nanmean(found.rows("noise"), 0)
    difference, error, n = _moments(truth - noise)
    errors = difference / error if n >= 2 and error > 0 else (np.inf if difference else 0.0)
    base = float(_nanmean(noise))
    skill = {
        name: _ratio(float(_nanmean(row)) - base, gap) for name, row in zip(names, found.rows("real"), strict=True)
    }
    known = [one for one in skill.values() if np.isfinite(one)]
    used = max(known) - min(known) if known else float("nan")
    return Span(mean_of(noise), found.chance, mean_of(truth), float(errors), skill, used)


def _retest(found: Evidence) -> Retest:
    nan = float("nan")
    seeds = found.retest  # (seeds, maps, pictures)
    whole = ~np.isnan(seeds).any((0, 1))
    kept = seeds[:, :, whole]
    components, reliability, needed, look = None, nan, nan, nan
    if kept.shape[2] >= 2:
        components = variance_components(kept.transpose(2, 1, 0))
        specific = components.picture_method + components.luck / components.seeds
        reliability = _ratio(components.method, components.method + specific / components.n)
        needed = _ratio(GOOD / (1 - GOOD) * specific, components.method)
        mapped = components.method + components.picture_method
        look = _ratio(mapped, mapped + components.luck)
    orders = {name: _order_of(rows) for name, rows in found.settings.items()}
    here = _order_of(seeds[0])
    settings = {name: spearman(here, other) for name, other in orders.items()}
    share = _setting_share(kept[0], [rows[:, whole] for rows in found.settings.values()])
    return Retest(
        components,
        reliability,
        needed,
        ranks_alpha(kept[0]),
        split_half(kept[0]),
        settings,
        share,
        look,
    )


def _order_of(rows: FloatArray) -> FloatArray:
    return _nanmean(rows, 1)


def _setting_share(here: FloatArray, others: Sequence[FloatArray]) -> float:
    """Of the variance of methods on standardised scores: the part that is not shared by all settings."""
    levels = [one for one in (here, *others) if one.size and not np.isnan(one).any() and float(one.std()) > 0]
    if len(levels) < 2:
        return float("nan")
    means = np.stack([(one - one.mean()).mean(1) / one.std() for one in levels])  # (settings, methods)
    means = means - means.mean(1, keepdims=True)
    between = float(means.mean(0).var())
    within = float(np.square(means - means.mean(0)).mean())
    return _ratio(within, between + within)


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
        order = dice.permutation(n)
        found.append(spearman(scores[:, order[: n // 2]].mean(1), scores[:, order[n // 2 :]].mean(1)))
    return float(np.mean(found))


def _blind(found: Evidence, real: FloatArray, gap: float) -> BlindMaps:
    names = [one.name for one in found.shown if one.kind == "blind"]
    rows, base = found.rows("blind"), float(_nanmean(found.rows("noise")))
    means = [float(_nanmean(row)) for row in rows]
    skill = {name: _ratio(mean - base, gap) for name, mean in zip(names, means, strict=True)}
    truth, unit = found.rows("truth")[0], abs(gap) or 1.0
    if not any(np.isfinite(means)):
        nothing = mean_of(np.full(len(truth), np.nan))
        return BlindMaps(skill, "", nothing, nothing)
    best = int(np.nanargmax(means))
    strongest = real[int(np.nanargmax(np.where(np.isnan(found_means := _nanmean(real, 1)), -np.inf, found_means)))]
    return BlindMaps(skill, names[best], mean_of((truth - rows[best]) / unit), mean_of((strongest - rows[best]) / unit))


def _taus(found: Evidence) -> FloatArray:
    """Per picture: Kendall's tau-b of score and true closeness over all degraded maps; 0 where all scores are equal."""
    at = graded(found.shown)
    taus = []
    for scores, close in zip(found.scores[at].T, found.closeness[at].T, strict=True):
        known = ~np.isnan(scores)
        if known.sum() < 3:
            taus.append(np.nan)
            continue
        tau = stats.kendalltau(scores[known], close[known]).statistic if np.ptp(scores[known]) else 0.0
        taus.append(float(tau))
    return np.array(taus)


def _cost(found: Evidence, truth: FloatArray, chance: FloatArray) -> Cost:
    difference = truth - chance
    spread = float(np.nanstd(difference)) if np.isfinite(difference).any() else float("nan")
    information = _ratio(float(_nanmean(difference)), spread) ** 2
    passes = found.passes.each + found.passes.shared
    return Cost(found.passes, found.seconds, information, _ratio(information, passes))


def with_families(cards: Sequence[JudgeCard], evidence: Sequence[Evidence]) -> list[JudgeCard]:
    """The cards with how far each metric orders all maps as the others of its family do."""
    means = {one.metric: _nanmean(one.scores, 1) for one in evidence}
    done = []
    for card in cards:
        others = [one.metric for one in cards if one.measures == card.measures and one.metric != card.metric]
        family = {name: spearman(means[card.metric], means[name]) for name in others}
        done.append(replace(card, agreement=replace(card.agreement, family=family)))
    return done


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Rank correlation over what both have; 0 where one does not vary, NaN for fewer than three."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    known = ~(np.isnan(one) | np.isnan(other))
    if known.sum() < 3:
        return float("nan")
    one, other = one[known], other[known]
    return float(stats.spearmanr(one, other).statistic) if np.ptp(one) and np.ptp(other) else 0.0


def _moments(values: FloatArray) -> tuple[float, float, int]:
    """Mean, its standard error, and how many there are."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return float("nan"), float("nan"), len(known)
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(len(known))), len(known)


def _nanmean(values: FloatArray, axis: int | None = None) -> FloatArray:
    """The mean of what is there; NaN, without a warning, where nothing is."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis) / known.sum(axis), dtype=np.float64)


def _ratio(above: float, below: float) -> float:
    return above / below if below else float("nan")
