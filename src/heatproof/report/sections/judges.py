"""The judges ranked: which metric can be trusted on these pictures, and which to use for which question."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from heatproof.report.charts.intervals import Estimate, interval_ranking
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections import section_of
from heatproof.report.sections.blocks import section, table
from heatproof.report.typeset import breakable, escape
from heatproof.results.protocol_notes import JudgesNotes, TrialNote
from heatproof.stats.judges.from_run import TrialRows, evidence_of
from heatproof.stats.judges.judge_card import JudgeCard
from heatproof.stats.judges.page import COLUMNS, recommended, rows
from heatproof.stats.judges.panel import Panel as Audit
from heatproof.stats.judges.rules import RULES, cards

PROTOCOL = "judges"
LEFT_OUT = ("MC in / w", "s")  # what only `heatproof audit` measures


@section_of(PROTOCOL)
def judges(reading: Reading) -> str | None:
    """For each data set and model: which metric to use, their ranking, and what was flagged."""
    parts, leads = [], []
    for dataset, model in reading.settings:
        found = cards_of(reading, dataset, model)
        if found:
            where = " · ".join(name for name in (dataset, model))
            parts.append(f"<h3>{breakable(where)}</h3>" + _page(found, dataset, model))
            leads.append(f"<ul>{''.join(f'<li>{_marked(one[2:])}</li>' for one in recommended(found))}</ul>")
    if not parts:
        return None
    lead = "Every metric judged maps of known quality, made for these very pictures. For which question to use which:"
    rules = "".join(f"<li><strong>{escape(name)}</strong>: {escape(what)}.</li>" for name, what in RULES.items())
    columns = "".join(
        f"<li><strong>{escape(name)}</strong>: {_marked(what)}.</li>"
        for name, what in COLUMNS.items()
        if what and name not in LEFT_OUT
    )
    rest = (
        "The truth, the truth degraded by known doses, noise, its inverse and maps that see no model: a metric that is "
        "worth its passes tells them apart in the right order. Agreement with the truth is a yardstick, and no proof: "
        "a model need not look at a region alone."
    )
    body = f"{''.join(parts)}<h4>Columns</h4><ul>{columns}</ul><h4>Rules</h4><ul>{rules}</ul>"
    return section(PROTOCOL, "The judges ranked", lead, body, opened="".join(leads), rest=rest, named="The cards")


def cards_of(reading: Reading, dataset: str, model: str) -> tuple[JudgeCard, ...]:
    """The cards of all metrics that were on trial on a data set and model, those that hold first."""
    found = []
    for study in reading.info.of_protocol(PROTOCOL):
        notes = study.noted(JudgesNotes)
        for label, note in notes.trials.items():
            panel = Panel(label, dataset, model)
            if reading.has(panel) and (evidence := evidence_of(_rows(reading, panel, notes, note))):
                found.append(evidence)
    return cards(found)


def _rows(reading: Reading, panel: Panel, notes: JudgesNotes, note: TrialNote) -> TrialRows:
    """The rows of a metric on trial, on the pictures that the model gets right, where it is known what is right."""
    details = reading.details_of(panel)
    pictures = reading.pictures
    wrong: set[str] = set()
    if len(pictures):
        here = (pictures["dataset"] == panel.dataset) & (pictures["model"] == panel.model)
        wrong = set(pictures.loc[here & pictures["right"].eq(False), "image"])
    called = {about.label or name: name for name, about in reading.info.methods.items()}  # long names are shortened
    scores = reading.scores
    same = (scores["metric"] == panel.metric) & (scores["dataset"] == panel.dataset) & (scores["model"] == panel.model)
    return TrialRows(
        metric=note.metric,
        measures=note.measures,
        chance=note.chance,
        higher_is_better=reading.higher_is_better(panel.metric),
        shown=note.shown,
        settings=note.settings,
        passes=note.passes,
        truth=called.get(notes.truth, notes.truth),
        real=tuple(called.get(one, one) for one in notes.real),
        forms={called.get(form, form): called.get(method, method) for form, method in notes.forms.items()},
        scores=reading.table(panel),
        details=details[~details["image"].isin(wrong)],
        seconds=float(scores.loc[same, "seconds"].sum()),
    )


def _page(found: Sequence[JudgeCard], dataset: str, model: str) -> str:
    shown = rows(Audit(model, dataset, found[0].pictures, "", (), tuple(found), 0.0))
    head = [name for name in COLUMNS if name not in LEFT_OUT]
    listed = table(head, [[row[name] for name in head] for row in shown], words=2)
    flags = "".join(
        f"<li><strong>{breakable(card.metric)}</strong>, {escape(flag.rule)}{'' if flag.grave else ' (caution)'}: "
        f"{escape(flag.reason)}.</li>"
        for card in found
        for flag in card.flags
    )
    return _chart(found) + listed + (f"<h4>What was flagged</h4><ul>{flags}</ul>" if flags else "")


def _chart(found: Sequence[JudgeCard]) -> str:
    """How far each metric agrees with the truth."""
    drawn = [
        Estimate(card.metric, one.estimate, one.low, one.high, note=card.verdict)
        for card in found
        if card.judged_by_truth and math.isfinite((one := card.agreement.truth).low)
    ]
    if not drawn:
        return ""
    picture = interval_ranking(drawn, title="How far metrics order maps of known quality", reference=0.0)
    return f"<figure>{picture}</figure>"


def _marked(sentence: str) -> str:
    """A sentence of the page of an audit as HTML: `code` and **strong** words."""
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(sentence))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", safe)
