"""The cards of an audit as a table, a Markdown page and JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heatproof.audit.judges.judge_card import JudgeCard
from heatproof.audit.judges.panel import Panel
from heatproof.audit.judges.rules import RULES
from heatproof.stats.bootstrap import Interval

COLUMNS = {
    "metric": "",
    "verdict": "`holds` if no rule is broken; descriptions rank nothing and have no verdict",
    "agrees": "mean over pictures of Kendall's tau between the score and the true closeness of all degraded maps",
    "truth > noise": "share of cases in which the truth scores better than noise",
    "noise > inverse": "share of cases in which noise scores better than the inverse of the truth",
    "dose": "rank correlation of less noise in the map with a better score",
    "detects": "the smallest share of noise found in 80 of 100 audits with as many pictures",
    "alpha": "Krippendorff's alpha: how far pictures agree on the order of methods",
    "split half": "rank correlation of the order of methods on two halves of the pictures",
    "used": "range of the real methods' skill, where noise is 0 and the truth 1",
    "best blind map": "the map without a model that scores best, and its skill",
    "MC in / w": "MetaQuantus's meta-consistency, by disturbed input and by disturbed weights",
    "passes": "forward and backward passes for one more map, and those that all maps of a picture share",
    "per pass": "information about truth against noise on one picture, per pass",
    "s": "seconds of processor time of this metric's whole audit",
}


def rows(panel: Panel) -> list[dict[str, str]]:
    """One row per metric, cells as text."""
    return [dict(zip(COLUMNS, _cells(card), strict=True)) for card in panel.cards]


def _cells(card: JudgeCard) -> Iterator[str]:
    mix, passes = card.doses[0], card.cost.passes
    yield card.metric
    yield f"flagged: {', '.join(dict.fromkeys(flag.rule for flag in card.flags))}" if card.flags else card.verdict
    yield ranged(card.agreement.truth)
    yield ranged(card.order.truth_over_noise)
    yield ranged(card.order.noise_over_inverse)
    yield ranged(mix.fall)
    yield number(mix.detectable, ".0%")
    yield ranged(card.retest.alpha)
    yield number(card.retest.split_half)
    yield number(card.span.used)
    best = card.blind.best
    yield f"{best} ({number(card.blind.skill[best])})" if best else "–"
    yield " / ".join(number(one.overall) for one in card.metaquantus) or "–"
    yield f"{number(passes.each, '.0f')} + {number(passes.shared, '.0f')}" + (
        f", {passes.explanations:.0f} maps" if passes.explanations > 0 else ""
    )
    yield number(card.cost.per_pass) if passes.each + passes.shared > 0 else "free"
    yield number(card.cost.seconds, ".1f")


def number(value: float, form: str = ".2f") -> str:
    return format(value, form) if math.isfinite(value) else "–"


def ranged(one: Interval) -> str:
    if not math.isfinite(one.low):
        return number(one.estimate)
    return f"{one.estimate:.2f} [{one.low:.2f}, {one.high:.2f}]"


def markdown(panel: Panel) -> str:
    """The whole page: the table, what its columns are, rules, flags, and which metric to use for which question."""
    lines = [
        f"{panel.pictures} pictures of `{panel.dataset}` that `{panel.model}` gets right; the truth is "
        f"`{panel.truth}`; methods {', '.join(f'`{one}`' for one in panel.methods)}. {panel.seconds:.0f} s of "
        "processor time. Brackets are 95 % bootstrap intervals over pictures.",
        "",
        *_table(rows(panel)),
        "",
        *(f"- *{name}*: {meaning}." for name, meaning in COLUMNS.items() if meaning),
        "",
        "### Which to use",
        "",
        *recommended(panel.cards),
        "",
        "### What was flagged",
        "",
        *_flagged(panel.cards),
        "",
        "Rules:",
        "",
        *(f"- *{rule}*: {meaning}." for rule, meaning in RULES.items()),
        "",
        "### Degradations, settings, families",
        "",
        *_table([_further(card) for card in panel.cards]),
        "",
        "*shuffled*, *shifted*, *blurred*: rank correlation of less degradation with a better score. *settings*: rank "
        "correlation of the order of methods under another setting with that under the metric's own. *family*: mean "
        "rank correlation of all maps' mean scores with those of metrics that measure the same. *pictures*: how many "
        "give the order of methods a reliability of 0.9. *map, not luck*: share of the variance on a picture that is "
        "not due to the seed.",
        "",
        "### MetaQuantus's tests",
        "",
        *_table([_meta(card, at) for card in panel.cards for at in range(len(card.metaquantus))]),
        "",
        "A metric that is constant earns 0.50, pure noise about 0.45, and one that ignores the map and returns the "
        "model's confidence up to 1: these numbers do not refer to a truth.",
        "",
    ]
    return "\n".join(lines)


def recommended(cards: Sequence[JudgeCard]) -> list[str]:
    """A sentence for each question: the metrics that hold, by agreement with the truth."""
    lines = []
    for question in dict.fromkeys(card.measures for card in cards if card.judged_by_truth):
        sound = [card for card in cards if card.measures == question and card.verdict == "holds"]
        if not sound:
            lines.append(f"- {question}: no metric on trial holds here.")
            continue
        nearest = sound[0]
        line = (
            f"- {question}: `{nearest.metric}` agrees most with the truth ({nearest.agreement.truth.estimate:.2f}); in "
            f"the order of agreement hold {', '.join(f'`{card.metric}`' for card in sound)}."
        )
        priced = [card for card in sound if math.isfinite(card.cost.per_pass)]
        if priced:
            thrifty = max(priced, key=lambda card: card.cost.per_pass)
            line += f" `{thrifty.metric}` tells most per pass."
        lines.append(line)
    return lines or ["- No metric on trial is about faithfulness or localisation."]


def _flagged(cards: Sequence[JudgeCard]) -> list[str]:
    lines = [f"- `{card.metric}`, {flag.rule}: {flag.reason}." for card in cards for flag in card.flags]
    return lines or ["Nothing."]


def _further(card: JudgeCard) -> dict[str, str]:
    settings, family = card.retest.settings, [one for one in card.agreement.family.values() if math.isfinite(one)]
    return {
        "metric": card.metric,
        "shuffled": ranged(card.doses[1].fall),
        "shifted": ranged(card.doses[2].fall),
        "blurred": ranged(card.doses[3].fall),
        "settings": ", ".join(f"{name}: {number(one)}" for name, one in settings.items()) or "–",
        "family": number(sum(family) / len(family)) if family else "–",
        "pictures": number(card.retest.pictures_needed, ".0f"),
        "map, not luck": number(card.retest.look),
    }


def _meta(card: JudgeCard, at: int) -> dict[str, str]:
    one = card.metaquantus[at]
    return {
        "metric": card.metric,
        "disturbed": one.disturbed,
        "IAC noise": number(one.iac_noise),
        "IAC adversary": number(one.iac_adversary),
        "IEC noise": number(one.iec_noise),
        "IEC adversary": number(one.iec_adversary),
        "MC": number(one.overall),
    }


def _table(cells: Sequence[Mapping[str, str]]) -> list[str]:
    if not cells:
        return ["–"]
    lines = [" | ".join(cells[0]), " | ".join("---" for _ in cells[0])]
    lines += [" | ".join(cell.replace("|", "\\|") for cell in row.values()) for row in cells]
    return [f"| {line} |" for line in lines]


def as_json(panel: Panel) -> str:
    """Everything, with null where there is no number."""
    plain = dataclasses.asdict(panel)
    for card, shown in zip(panel.cards, plain["cards"], strict=True):
        shown["verdict"] = card.verdict
    return json.dumps(_finite(plain), indent=1, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write(panel: Panel, directory: Path) -> list[Path]:
    """cards.json and judges.md in a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    texts = {"cards.json": as_json(panel) + "\n", "judges.md": f"# The judges judged\n\n{markdown(panel)}"}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in texts]
