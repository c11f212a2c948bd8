"""Methods × questions: a mark for each, from the adjusted tests of the page, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from heatproof.report.questions import Question, questions
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.typeset import shortened
from heatproof.stats.marks import MARKS, Agreement, Mark, agreement, mark_of


@dataclass(frozen=True)
class Cell:
    """A method's answer to a question: a mark for every comparison with scores of it, and why others have none."""

    marks: Mapping[Panel, Mark]
    reasons: tuple[str, ...] = ()

    @cached_property
    def found(self) -> Agreement | None:
        """What the marks amount to; None where the question does not apply."""
        return agreement(list(self.marks.values())) if self.marks else None

    @property
    def beaten(self) -> int:
        """In how many comparisons a blind control beats the method."""
        return sum(mark == "beaten" for mark in self.marks.values())


@dataclass(frozen=True, eq=False)
class Answers:
    """The whole matrix; methods from the best marks down."""

    methods: tuple[str, ...]
    questions: tuple[Question, ...]
    cells: Mapping[tuple[str, Question], Cell]

    def cell(self, method: str, question: Question) -> Cell:
        return self.cells[method, question]

    def held(self, method: str) -> frozenset[Question]:
        """The questions in which nothing beats the method in most comparisons."""
        found = {one: self.cell(method, one).found for one in self.questions}
        return frozenset(one for one, cell in found.items() if cell is not None and cell.mark in ("best", "good"))

    def holding(self, method: str) -> int:
        """The number of these questions."""
        return len(self.held(method))

    def applying(self, method: str) -> int:
        """The number of questions that apply to the method."""
        return sum(self.cell(method, one).found is not None for one in self.questions)

    def beaten(self, method: str) -> bool:
        return any(self.cell(method, one).beaten for one in self.questions)

    def with_mark(self, question: Question, mark: Mark, methods: Sequence[str] | None = None) -> list[str]:
        """The methods that have this mark in most comparisons."""
        return [
            method
            for method in (self.methods if methods is None else methods)
            if (found := self.cell(method, question).found) is not None and found.mark == mark
        ]

    @property
    def leaders(self) -> list[str]:
        """Methods that no blind control beats and that hold in some question, best first."""
        return [method for method in self.methods if self.holding(method) and not self.beaten(method)]


def answers(reading: Reading) -> Answers:
    """The matrix of a run."""
    panels_of = questions(reading)
    contestants = [method for method in reading.methods if not reading.is_control(method)]
    cells = {
        (method, question): _cell(reading, method, panels, yardstick=question.yardstick)
        for question, panels in panels_of.items()
        for method in contestants
    }
    unsorted = Answers(tuple(contestants), tuple(panels_of), cells)

    def place(method: str) -> tuple[float, float]:
        marks = [found.mark for one in panels_of if (found := unsorted.cell(method, one).found) is not None]
        ranks = [
            reading.standings[panel].ranks[method][0] / len(reading.standings[panel].ranks)
            for panels in panels_of.values()
            for panel in panels
            if method in reading.standings[panel].ranks
        ]
        mean = sum(MARKS.index(mark) for mark in marks) / len(marks) if marks else float(len(MARKS))
        return mean, sum(ranks) / len(ranks) if ranks else 1.0

    return Answers(tuple(sorted(contestants, key=place)), tuple(panels_of), cells)


def _cell(reading: Reading, method: str, panels: Sequence[Panel], *, yardstick: bool) -> Cell:
    marks: dict[Panel, Mark] = {}
    reasons: list[str] = []
    for panel in panels:
        contestants = reading.contenders(panel).columns if reading.has(panel) else ()
        if method in contestants:
            marks[panel] = mark_of(
                method, reading.pairs(panel), list(map(str, contestants)), reading.blind(panel), yardstick=yardstick
            )
        else:
            reasons.append(_reason(reading, method, panel))
    return Cell(marks, tuple(dict.fromkeys(reasons)))


def _reason(reading: Reading, method: str, panel: Panel) -> str:
    """Why a method has no score in a comparison."""
    rows = reading.scores
    here = (rows["metric"] == panel.metric) & (rows["model"] == panel.model) & (rows["dataset"] == panel.dataset)
    notes = rows.loc[here & (rows["method"] == method), ["status", "note"]]
    if notes.empty:
        return f"was not run under {panel.metric}"
    first = notes.iloc[0]
    why = str(first["note"] or "") or str(first["status"]).replace("_", " ")
    return f"{panel.metric}: {shortened(why, 160)}"
