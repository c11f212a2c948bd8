"""When a metric is flagged: explicit rules on the numbers of its card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from heatproof.audit.judges.judge_card import Flag, JudgeCard
from heatproof.stats.bootstrap import Interval

LEAST_SCORED = 0.5  # share of maps and pictures that must have a score
RISE = 0.1  # of the range between noise and truth: a smaller rise with the dose is no defect

RULES = {
    "no_score": f"fewer than {LEAST_SCORED:.0%} of the maps have a score",
    "constant": "all maps of a picture score the same, on every picture",
    "order": "the truth does not beat noise, or noise the inverse, in more than half of the cases: the 95 % interval "
    "of the share of wins reaches 0.5",
    "dose": "the score does not fall with the share of noise in the map: the 95 % interval of its rank correlation "
    f"reaches 0, or the mean rises significantly by more than {RISE:.0%} of the range",
    "reliability": "pictures do not agree on the order of methods: the 95 % interval of Krippendorff's alpha reaches 0",
    "blind": "a map that sees no model is not beaten: by the truth, or, for metrics that are not about the truth, by "
    "the best real method; the 95 % interval of the difference reaches 0",
}


def flagged(card: JudgeCard, constant: bool) -> JudgeCard:
    """The card with its flags; descriptions have none. `constant` says that no score of any picture varies."""
    if card.verdict == "description":
        return card
    return replace(card, flags=tuple(_flags(card, constant)))


def _flags(card: JudgeCard, constant: bool) -> Iterator[Flag]:
    if not card.scored >= LEAST_SCORED:
        yield Flag("no_score", f"{card.scored:.0%} of the maps have a score")
        return
    if constant:
        yield Flag("constant", "all maps score the same")
        return
    if card.judged_by_truth:
        pairs = {"the truth beats noise": card.order.truth_over_noise}
        pairs["noise beats the inverse"] = card.order.noise_over_inverse
        for what, share in pairs.items():
            if not share.low > 0.5:
                yield Flag("order", f"{what} in {_shown(share)} of the cases")
        mix = card.doses[0]
        if not mix.fall.low > 0:
            yield Flag("dose", f"less noise in the map and a better score correlate by {_shown(mix.fall)}")
        elif mix.rise > RISE:
            yield Flag("dose", f"with more noise in the map the mean score rises by {mix.rise:.0%} of the range")
    if not card.retest.alpha.low > 0:
        yield Flag("reliability", f"pictures agree on the order of methods by alpha = {_shown(card.retest.alpha)}")
    ahead, who = (
        (card.blind.behind_truth, "the truth")
        if card.judged_by_truth
        else (card.blind.behind_real, "the best real method")
    )
    if not ahead.low > 0:
        yield Flag("blind", f"{who} is ahead of the blind map '{card.blind.best}' by {_shown(ahead)} of the range")


def _shown(one: Interval) -> str:
    return f"{one.estimate:.2f} [{one.low:.2f}, {one.high:.2f}]"
