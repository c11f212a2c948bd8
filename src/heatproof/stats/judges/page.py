"""The cards of an audit as a table, a Markdown page and JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heatproof.stats.bootstrap import Interval
from heatproof.stats.judges.judge_card import JudgeCard
from heatproof.stats.judges.panel import Panel
from heatproof.stats.judges.rules import RULES

COLUMNS = {
    "metric": "",
    "verdict": "`holds` if no rule is broken; `caution` if the numbers do not suffice to say so; `flagged` if they "
    "speak against it; descriptions rank nothing and have no verdict",
    "agrees": "mean over pictures of Kendall's tau between the score and the true closeness of all degraded maps",
    "truth > noise": "share of cases in which the truth scores better than noise",
    "noise > inverse": "share of cases in which noise scores better than the inverse of the truth",
    "dose": "rank correlation of less noise in the map with a better score",
    "detects": "the smallest share of noise found in 80 of 100 audits with as many pictures",
    "alpha": "Krippendorff's alpha: how far pictures agree on the order of methods",
    "split half": "rank correlation of the order of methods on two halves of the pictures",
    "used": "range of the real methods' skill, where noise is 0 and the truth 1",
    "blind": "the map without a model that scores best, and the skill of the one chosen on the other pictures",
    "MC in / w": "MetaQuantus's meta-consistency, by disturbed input and by disturbed weights",
    "passes": "forward and backward passes for one more map, and those that all maps of a picture share",
    "per pass": "information about truth against noise on one picture, per pass",
    "s": "seconds of processor time of this metric's whole audit",
}


def rows(panel: Panel) -> list[dict[str, str]]:
    """One row per metric, cells as text."""
    return [dict(zip(COLUMNS, _cells(card), strict=True)) for card in panel.cards]


def _cells(card: JudgeCard) -> Iterator[str]:
    mix, passes = card.dose("mix"), card.cost.passes
    yield card.metric
    yield (
        f"{card.verdict}: {', '.join(dict.fromkeys(flag.rule for flag in card.flags))}" if card.flags else card.verdict
    )
    yield ranged(card.agreement.truth)
    yield ranged(card.order.truth_over_noise)
    yield ranged(card.order.noise_over_inverse)
    yield ranged(mix.fall) if mix else "–"
    yield number(mix.detectable, ".0%") if mix else "–"
    yield ranged(card.retest.alpha)
    yield number(card.retest.split_half)
    yield number(card.span.used)
    best = card.blind.best
    yield f"{best} ({number(card.blind.fitted)})" if best else "–"
    yield " / ".join(number(one.overall) for one in card.metaquantus) or "–"
    counted = math.isfinite(passes.each + passes.shared)
    again = f", {passes.explanations:.0f} maps" if passes.explanations > 0 else ""
    yield f"{passes.each:.0f} + {passes.shared:.0f}{again}" if counted else "–"
    yield "free" if passes.each + passes.shared == 0 and not again else _at_most(card.cost.per_pass)
    yield number(card.cost.seconds, ".1f")


def number(value: float, form: str = ".2f") -> str:
    return format(value, form) if math.isfinite(value) else "–"


def _at_most(value: float) -> str:
    """The information per pass; beyond 1000 it only says that the truth always scores the same."""
    return "> 1000" if value > 1000 else number(value)


def ranged(one: Interval) -> str:
    if not math.isfinite(one.low):
        return number(one.estimate)
    return f"{one.estimate:.2f} [{one.low:.2f}, {one.high:.2f}]"


def markdown(panel: Panel) -> str:
    """The whole page of one audit."""
    return f"{tables(panel)}\n{legend()}"


def tables(panel: Panel) -> str:
    """What one audit found: which metric to use, the ranking of metrics, what was flagged, and all further numbers."""
    lines = [
        f"{panel.pictures} pictures of `{panel.dataset}` that `{panel.model}` gets right; the truth is "
        f"`{panel.truth}`; methods {', '.join(f'`{one}`' for one in panel.methods)}. {panel.seconds:.0f} s of "
        "processor time. Brackets are 95 % bootstrap intervals over pictures.",
        "",
        "### Which to use",
        "",
        *recommended(panel.cards),
        "",
        "### The judges ranked",
        "",
        *_table(rows(panel)),
        "",
        "### What was flagged, and where caution is due",
        "",
        *_flagged(panel.cards),
        "",
        "### Degradations, settings, families",
        "",
        *_table([_further(card) for card in panel.cards]),
        "",
        "### Where the variance of a score comes from",
        "",
        *_table([_shares(card) for card in panel.cards if card.retest.shares]),
        "",
    ]
    meta = [_meta(card, at) for card in panel.cards for at in range(len(card.metaquantus))]
    if meta:
        lines += ["### MetaQuantus's tests", "", *_table(meta), ""]
    return "\n".join(lines)


def legend() -> str:
    """What the columns and the rules are."""
    lines = [
        "### What the columns say",
        "",
        *(f"- *{name}*: {meaning}." for name, meaning in COLUMNS.items() if meaning),
        "- *shuffled*, *shifted*, *blurred*: rank correlation of less degradation with a better score.",
        "- *settings*: rank correlation of the order of methods under another setting of the metric with that under "
        "its own.",
        "- *methods' settings*: the largest change of a method's skill under another setting of the method.",
        "- *family*: mean rank correlation of all maps' mean scores with those of metrics that measure the same.",
        "- *needed*: pictures that give the order of methods a reliability of 0.9.",
        "- *map, not luck*: share of the variance on a picture that is not due to the seed.",
        "- MetaQuantus: a metric that is constant earns 0.50, pure noise about 0.43, and one that ignores the map and "
        "returns the model's confidence up to 1: these numbers do not refer to a truth.",
        "",
        "Rules:",
        "",
        *(f"- *{rule}*: {meaning}." for rule, meaning in RULES.items()),
        "",
    ]
    return "\n".join(lines)


def recommended(cards: Sequence[JudgeCard]) -> list[str]:
    """A sentence for each question: the metrics that hold, by agreement with the truth."""
    lines = []
    for question in dict.fromkeys(card.measures for card in cards if card.judged_by_truth):
        of_it = [card for card in cards if card.measures == question]
        sound = [card for card in of_it if card.verdict == "holds"]
        careful = [card for card in of_it if card.verdict == "caution"]
        line = f"- {QUESTIONS.get(question, question)}: " + _sound(sound)
        if careful:
            line += f" With caution: {_names(careful)}."
        failed = [card for card in of_it if card.verdict == "flagged"]
        if failed:
            line += f" Not on such data: {_names(failed)}."
        lines.append(line)
    return lines or ["- No metric on trial is about a question whose answer is known."]


QUESTIONS: dict[str, str] = {
    "faithfulness": "**Does the answer rest on what the map marks?** (faithfulness)",
    "localisation": "**Does the map lie on the object?** (localisation)",
    "robustness": "**Does the map stay when the picture hardly changes?** (robustness)",
    "randomisation": "**Does the map depend on the model and the class?** (randomisation)",
    "axiom": "**Does the map add up, and leave out what the model cannot see?** (axioms)",
}


def _sound(sound: Sequence[JudgeCard]) -> str:
    if not sound:
        return "no metric on trial holds here."
    nearest = sound[0]
    line = f"`{nearest.metric}` agrees most with the truth ({nearest.agreement.truth.estimate:.2f})"
    line += f"; then {_names(sound[1:])}." if len(sound) > 1 else "."
    priced = [card for card in sound if math.isfinite(card.cost.per_pass)]
    if len(sound) > 1 and priced:
        line += f" `{max(priced, key=lambda card: card.cost.per_pass).metric}` tells most per pass."
    return line


def _names(cards: Sequence[JudgeCard]) -> str:
    return ", ".join(f"`{card.metric}`" for card in cards)


def _flagged(cards: Sequence[JudgeCard]) -> list[str]:
    lines = [
        f"- `{card.metric}`, {flag.rule}{'' if flag.grave else ' (caution)'}: {flag.reason}."
        for card in cards
        for flag in card.flags
    ]
    return lines or ["Nothing."]


def _further(card: JudgeCard) -> dict[str, str]:
    settings, family = card.retest.settings, [one for one in card.agreement.family.values() if math.isfinite(one)]
    falls = {how: dose.fall for how in ("shuffle", "shift", "blur") if (dose := card.dose(how))}
    forms = {name: one for name, one in card.retest.forms.items() if math.isfinite(one)}
    widest = max(forms, key=lambda name: abs(forms[name])) if forms else ""
    return {
        "metric": card.metric,
        "shuffled": ranged(falls["shuffle"]) if "shuffle" in falls else "–",
        "shifted": ranged(falls["shift"]) if "shift" in falls else "–",
        "blurred": ranged(falls["blur"]) if "blur" in falls else "–",
        "settings": ", ".join(f"{name}: {number(one)}" for name, one in settings.items()) or "–",
        "methods' settings": f"{widest}: {forms[widest]:+.2f}" if widest else "–",
        "family": number(sum(family) / len(family)) if family else "–",
        "needed": number(card.retest.pictures_needed, ".0f"),
        "map, not luck": number(card.retest.look),
    }


def _shares(card: JudgeCard) -> dict[str, str]:
    return {"metric": card.metric, **{name: number(one, ".0%") for name, one in card.retest.shares.items()}}


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


def lines(panel: Panel) -> list[dict[str, Any]]:
    """Each card in a line, as data: for verdicts elsewhere."""
    found = []
    for card in panel.cards:
        truth, mix = card.agreement.truth, card.dose("mix")
        found.append(
            {
                "metric": card.metric,
                "model": panel.model,
                "dataset": panel.dataset,
                "pictures": card.pictures,
                "verdict": card.verdict,
                "rules": list(dict.fromkeys(flag.rule for flag in card.flags)),
                "agreement": _rounded(truth.estimate),
                "blind": card.blind.best,
                "blind_skill": _rounded(card.blind.fitted),
                "detects": _rounded(mix.detectable) if mix else None,
            }
        )
    return found


def _rounded(value: float) -> float | None:
    return round(value, 2) if math.isfinite(value) else None


def write(panel: Panel, directory: Path) -> list[Path]:
    """cards.json and judges.md in a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    texts = {"cards.json": as_json(panel) + "\n", "judges.md": f"# The judges judged\n\n{markdown(panel)}"}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in texts]
