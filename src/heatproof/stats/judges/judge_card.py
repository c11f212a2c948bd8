"""The judge's card: what an audit found out about one metric, as named numbers with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from heatproof.stats.bootstrap import FloatArray, Interval
from heatproof.stats.judges.blind_maps import BlindMaps, blind_maps
from heatproof.stats.judges.evidence import Evidence, Passes, graded
from heatproof.stats.judges.metaquantus import MetaConsistency, meta_consistency
from heatproof.stats.judges.order_and_dose import Dose, Order, Span, doses, order, span
from heatproof.stats.judges.retest import Retest, retest
from heatproof.stats.judges.sums import mean_of, nanmean, ratio, spearman
from heatproof.traits import Measures

Rule: TypeAlias = Literal["no_score", "constant", "order", "dose", "reliability", "blind"]
Verdict: TypeAlias = Literal["holds", "caution", "flagged", "description"]

# What can be answered rightly or wrongly, so that maps of known quality can be made for it.
KNOWN: tuple[Measures, ...] = ("faithfulness", "localisation", "robustness", "randomisation", "axiom")


@dataclass(frozen=True)
class Flag:
    """A rule that a metric breaks, and the numbers that say so."""

    rule: Rule
    reason: str
    grave: bool = True  # the numbers speak against the metric; else they do not suffice to speak for it


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
    scored: float  # share of maps with a known place, and of real ones, that have a score
    judged_by_truth: bool  # whether there are maps of known quality for what it measures
    order: Order
    doses: tuple[Dose, ...]
    span: Span
    retest: Retest
    metaquantus: tuple[MetaConsistency, ...]
    blind: BlindMaps
    agreement: Agreement
    cost: Cost
    reasons: tuple[str, ...] = ()  # why scores are missing
    flags: tuple[Flag, ...] = ()

    @property
    def verdict(self) -> Verdict:
        if self.measures in ("description", "pictures", "chance"):
            return "description"
        if any(flag.grave for flag in self.flags):
            return "flagged"
        return "caution" if self.flags else "holds"

    def dose(self, how: str) -> Dose | None:
        """Its answer to one degradation, if it was shown that."""
        return next((one for one in self.doses if one.how == how), None)


def judge_card(found: Evidence) -> JudgeCard:
    """All numbers of a card, without flags and family: see `rules.flagged` and `with_families`."""
    truth, chance = found.rows("truth")[0], nanmean(found.rows("noise"), 0)
    gap = float(nanmean(truth - chance))
    return JudgeCard(
        metric=found.metric,
        measures=found.measures,
        higher_is_better=found.higher_is_better,
        pictures=found.scores.shape[1],
        scored=_scored(found),
        judged_by_truth=found.measures in KNOWN,
        order=order(found),
        doses=doses(found, gap),
        span=span(found, gap),
        retest=retest(found, gap),
        metaquantus=meta_consistency(found),
        blind=blind_maps(found, gap),
        agreement=Agreement(mean_of(_taus(found)), {}),
        cost=_cost(found, truth, chance),
        reasons=found.reasons,
    )


def _scored(found: Evidence) -> float:
    """Blind maps and variants are left out: that some metrics do not apply to these says nothing about them."""
    kept = [at for at, one in enumerate(found.shown) if one.kind not in ("blind", "variant")]
    return float(np.isfinite(found.scores[kept]).mean())


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
    information = ratio(float(nanmean(difference)), spread) ** 2
    passes = found.passes.each + found.passes.shared
    return Cost(found.passes, found.seconds, information, ratio(information, passes))


def with_families(cards: Sequence[JudgeCard], evidence: Sequence[Evidence]) -> list[JudgeCard]:
    """The cards with how far each metric orders all maps as the others of its family do."""
    means = {
        one.metric: dict(zip((s.name for s in one.shown), nanmean(one.scores, 1), strict=True)) for one in evidence
    }
    done = []
    for card in cards:
        mine, family = means[card.metric], {}
        for other in cards:
            if other.measures == card.measures and other.metric != card.metric:
                theirs = means[other.metric]
                both = [name for name in mine if name in theirs]
                family[other.metric] = spearman([mine[name] for name in both], [theirs[name] for name in both])
        done.append(replace(card, agreement=replace(card.agreement, family=family)))
    return done


def is_constant(found: Evidence) -> bool:
    """Whether no picture's score depends on the map."""
    known = np.isnan(found.scores)
    highest, lowest = np.where(known, -np.inf, found.scores).max(0), np.where(known, np.inf, found.scores).min(0)
    return bool((highest <= lowest).all())


def merit(card: JudgeCard) -> tuple[int, int, float]:
    """Those that hold first, by agreement with the truth; frauds last, descriptions after all."""
    place = {"holds": 0, "caution": 1, "flagged": 2, "description": 3}[card.verdict]
    agreement = card.agreement.truth.estimate
    grave = sum(flag.grave for flag in card.flags)
    return place, grave, -agreement if np.isfinite(agreement) else 0.0
