"""When a metric is flagged, and when only caution is due: explicit rules on the numbers of its card."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from heatproof.stats.bootstrap import Interval
from heatproof.stats.judges.evidence import Evidence
from heatproof.stats.judges.judge_card import Flag, JudgeCard, is_constant, judge_card, merit, with_families

LEAST_SCORED = 0.5  # share of maps and pictures that must have a score
RISE = 0.1  # of the range between noise and truth: a smaller rise with the dose is no defect

TOLD = 0.75  # a share of wins that a useful metric may have
FALLS = 0.5  # and a rank correlation with the dose

RULES = {
    "no_score": f"fewer than {LEAST_SCORED:.0%} of the maps have a score",
    "constant": "all maps of a picture score the same, on every picture",
    "order": "the truth does not beat noise, or noise the inverse, in more than half of the cases: the 95 % interval "
    "of the share of wins reaches 0.5; a caution where it reaches "
    f"{TOLD:g} as well, so that more pictures may decide",
    "dose": "the score does not fall with the share of noise in the map: the 95 % interval of its rank correlation "
    f"reaches 0 (a caution where it reaches {FALLS:g} as well), or the mean rises significantly by more than "
    f"{RISE:.0%} of the range",
    "reliability": "pictures do not agree on the order of methods: the 95 % interval of Krippendorff's alpha reaches "
    "0; a caution, since more pictures may agree",
    "blind": "a map that sees no model scores better than the truth: the 95 % interval of the difference lies below 0; "
    "where it reaches 0, neither is shown to be ahead, which is a caution. The blind map is chosen on the other "
    "pictures. Not asked of robustness: a map that ignores the picture holds still by design",
}


def cards(evidence: Sequence[Evidence]) -> tuple[JudgeCard, ...]:
    """The card of every metric with its flags; those that hold first."""
    made = [flagged(judge_card(one), is_constant(one)) for one in evidence]
    return tuple(sorted(with_families(made, evidence), key=merit))


def flagged(card: JudgeCard, constant: bool) -> JudgeCard:
    """The card with its flags; descriptions have none. `constant` says that no score of any picture varies."""
    if card.verdict == "description":
        return card
    return replace(card, flags=tuple(_flags(card, constant)))


def _flags(card: JudgeCard, constant: bool) -> Iterator[Flag]:
    if not card.scored >= LEAST_SCORED:
        why = f": {card.reasons[0]}" if card.reasons else ""
        yield Flag("no_score", f"{card.scored:.0%} of the maps have a score{why}")
        return
    if constant:
        yield Flag("constant", "all maps score the same")
        return
    if card.judged_by_truth:
        yield from _against_truth(card)
    alpha = card.retest.alpha
    if math.isfinite(alpha.estimate) and not alpha.low > 0:
        yield Flag("reliability", f"pictures agree on the order of methods by alpha = {_shown(alpha)}", grave=False)
    yield from _blind(card)


def _against_truth(card: JudgeCard) -> Iterator[Flag]:
    pairs = {"the truth beats noise": card.order.truth_over_noise}
    pairs["noise beats the inverse"] = card.order.noise_over_inverse
    for what, share in pairs.items():
        if math.isfinite(share.estimate) and not share.low > 0.5:
            yield Flag("order", f"{what} in {_shown(share)} of the cases", grave=share.high < TOLD)
    mix = card.dose("mix")
    if mix is None:
        return
    if not mix.fall.low > 0:
        reason = f"less noise in the map and a better score correlate by {_shown(mix.fall)}"
        yield Flag("dose", reason, grave=mix.fall.high < FALLS)
    elif mix.rise > RISE:
        yield Flag("dose", f"with more noise in the map the mean score rises by {mix.rise:.0%} of the range")


def _blind(card: JudgeCard) -> Iterator[Flag]:
    if card.measures == "robustness":
        return
    real = card.blind.behind_real
    ahead, who = (card.blind.behind_truth, "the truth") if card.judged_by_truth else (real, "the best real method")
    if math.isfinite(ahead.estimate) and not ahead.low > 0:
        reason = f"{who} is ahead of blind maps (best: '{card.blind.best}') by {_shown(ahead)} of the range"
        yield Flag("blind", reason, grave=ahead.high < 0)


def _shown(one: Interval) -> str:
    return f"{one.estimate:.2f} [{one.low:.2f}, {one.high:.2f}]"
