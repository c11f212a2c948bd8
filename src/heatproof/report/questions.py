"""The questions that metrics answer, by what the metrics declare: `measures`, or a `question` of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heatproof.report.run_numbers import Panel, Reading
from heatproof.traits import MetricTraits


@dataclass(frozen=True)
class Question:
    """A column of the first table, and the situation in which its answer counts."""

    words: str
    situation: str
    yardstick: bool = True  # whether blind controls count: those that ignore the picture are perfectly steady


USUAL: Mapping[str, Question] = {
    "faithfulness": Question("Confirmed by the model?", "If the model’s own answer should confirm the map"),
    "localisation": Question("On the object?", "If heat should lie on the object"),
    "randomisation": Question("Knows what was learnt?", "If the map must depend on what the model learnt"),
    "robustness": Question("Holds when redrawn?", "If pictures are noisy", yardstick=False),
    "axiom": Question("Keeps the axioms?", "If values should keep what theory promises"),
    "other": Question("By other measures?", "By the other measures"),
}
DECLARED: Mapping[str, Question] = {
    "Signed rightly?": Question("Signed rightly?", "If you need signs"),
    "Follows known importance?": Question("Follows known importance?", "If it must follow importance that is known"),
}
_ORDER = [
    *("Confirmed by the model?", "On the object?", "Signed rightly?", "Follows known importance?"),
    *("Knows what was learnt?", "Holds when redrawn?", "Keeps the axioms?"),
]


def question_of(about: MetricTraits) -> Question:
    """The question of a metric that declares this."""
    usual = USUAL.get(about.measures, USUAL["other"])
    if not about.question:
        return usual
    return DECLARED.get(about.question) or Question(about.question, f"By “{about.question}”", usual.yardstick)


def questions(reading: Reading) -> dict[Question, list[Panel]]:
    """Every question of a run with the comparisons that answer it: the main ones, or all where none is main."""
    found: dict[Question, list[Panel]] = {}
    for panel in reading.panels:
        found.setdefault(question_of(reading.info.metric(panel.metric)), []).append(panel)
    main = set(reading.main)
    chosen = {one: [panel for panel in panels if panel in main] or panels for one, panels in found.items()}
    return dict(sorted(chosen.items(), key=lambda item: place(item[0])))


def place(question: Question) -> int:
    return _ORDER.index(question.words) if question.words in _ORDER else len(_ORDER)


def unasked(reading: Reading) -> list[Question]:
    """The usual questions that no metric of this run answers."""
    answered = {one.words for one in questions(reading)}
    known = [*USUAL.values(), *DECLARED.values()]
    return sorted((one for one in known if one.words in _ORDER and one.words not in answered), key=place)
