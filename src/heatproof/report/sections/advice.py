"""One sentence of advice per situation, each from the marks of the page or from tests of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heatproof.errors import HeatproofError
from heatproof.report.answers import Answers
from heatproof.report.questions import USUAL, Question, questions, unasked
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.size_strata import region_shares, strata_of
from heatproof.report.typeset import counted, escape, listed
from heatproof.results.protocol_notes import SizeStrata
from heatproof.stats.bootstrap_t import FEWEST
from heatproof.stats.marks import mark_of
from heatproof.stats.page import Card, PairTests, page_tests

NAMED = 4  # methods of a sentence; further ones are counted
MODEL, PLACE = USUAL["faithfulness"], USUAL["localisation"]


def advice(reading: Reading, answers: Answers) -> list[str]:
    """Sentences, as HTML."""
    found = [_of_question(answers, question) for question in answers.questions]
    signs = _signed(reading, answers)
    return [*found, *([signs] if signs else []), *_small_objects(reading)]


def limits(reading: Reading) -> str:
    """What these numbers cannot say, as HTML; empty where every usual question was asked."""
    lacking = unasked(reading)
    if not lacking:
        return ""
    words = listed([f"“{escape(one.words)}”" for one in lacking])
    needs = "; ".join(f"{escape(name)}: {escape(why)}" for name, why in reading.info.left_out.items())
    wanted = f"Left out: {needs}." if needs else "<code>heatproof judge MODEL IMAGES</code> asks all that apply."
    return f"Not answered here: {words}. {wanted}"


def _of_question(answers: Answers, question: Question) -> str:
    return f"<b>{escape(question.situation)}:</b> {_standing(answers, question, answers.methods)}."


def _standing(answers: Answers, question: Question, methods: Sequence[str]) -> str:
    """Who leads under a question among these methods, as the end of a sentence."""
    best = answers.with_mark(question, "best", methods)
    good = answers.with_mark(question, "good", methods)
    if best:
        found = answers.cell(best[0], question).found
        often = "" if found is None or found.unanimous else f" in {found.reached} of {found.of} comparisons"
        return f"{_names(best)} {'is' if len(best) == 1 else 'are'} clearly best{often}"
    if good:
        whole = all((found := answers.cell(one, question).found) is not None and found.unanimous for one in good)
        most = "" if whole else " in most comparisons"
        if len(good) == 1:
            marks = list(answers.cell(good[0], question).marks.values())
            times = marks.count("best")
            clear = f", and it is clearly best in {times} of {len(marks)} comparisons" if times else ""
            return f"{_names(good)}; no method beats it{most}{clear}"
        return f"{_names(good)}; no method beats them{most}, and these pictures do not say which is better"
    behind = answers.with_mark(question, "behind", methods)
    if behind:
        return f"{_names(behind)}, with care: comparisons disagree on who leads"
    if not any(answers.cell(one, question).found for one in methods):
        return "no method could be judged"
    blind = " from maps that look at nothing" if question.yardstick else ""
    return f"these pictures separate no method{blind}"


def _signed(reading: Reading, answers: Answers) -> str:
    """Who leads among the methods whose maps have a sign, under the model’s own judgement."""
    signed = [one for one in answers.methods if reading.info.method(one).signed]
    if MODEL not in answers.questions or any(one.words == "Signed rightly?" for one in answers.questions):
        return ""
    if not signed or len(signed) == len(answers.methods):
        return ""
    level = [one for one in signed if (found := answers.cell(one, MODEL).found) and found.mark in ("best", "good")]
    if level:
        others = [*answers.with_mark(MODEL, "best"), *answers.with_mark(MODEL, "good")]
        silent = [one for one in others if one not in signed]
        tail = f"; the maps of {_names(silent)} say how much, not which way" if silent else ", whose maps have them"
        return f"<b>If you need signs:</b> {_names(level)}{tail}."
    clear = answers.with_mark(MODEL, "behind", signed)
    if clear:
        return f"<b>If you need signs:</b> {_names(clear)}; they beat every blind map, and are behind the best."
    return "<b>If you need signs:</b> no signed method is shown to beat the blind maps here."


def _small_objects(reading: Reading) -> Iterator[str]:
    """The same tests on the third of the pictures with the smallest regions."""
    panels = questions(reading).get(PLACE, [])
    cards: dict[Panel, Card] = {}
    sizes: dict[Panel, int] = {}
    for panel in panels:
        shares = region_shares(reading, panel)
        table = reading.table(panel) if reading.has(panel) else None
        if table is None or not len(shares):
            continue
        table = table.loc[table.index.intersection(shares.index)]
        try:
            strata = strata_of(shares.loc[table.index], SizeStrata())
        except HeatproofError:
            continue
        small = table[[name == strata.names[0] for name in strata.labels()]].dropna(axis=1, how="all")
        if len(small) >= FEWEST and small.shape[1] > 1:
            controls = [method for method in small.columns if reading.is_control(method)]
            cards[panel] = Card(small, reading.higher_is_better(panel.metric), controls, panel.dataset)
            sizes[panel] = len(small)
    if not cards:
        return
    try:
        tests = page_tests(cards, reading.run.groups, alpha=reading.page.level).tests
    except HeatproofError:
        return
    for panel, found in tests.items():
        yield f"<b>For small objects{_where(reading, panel)}:</b> {_small(reading, panel, found)}."


def _small(reading: Reading, panel: Panel, tests: PairTests) -> str:
    contestants = [method for method in tests.methods if not reading.is_control(method)]
    blind = [method for method in reading.blind(panel) if method in tests.methods]
    marks = {method: mark_of(method, tests, contestants, blind) for method in contestants}
    basis = f"{escape(panel.metric)} on the {counted(tests.n_images, 'picture')} with the smallest regions"
    for mark, words in (("best", "clearly best"), ("good", "not beaten by any method")):
        led = [method for method in contestants if marks[method] == mark]
        if led:
            means = reading.table(panel)[led].mean().sort_values(ascending=not reading.higher_is_better(panel.metric))
            return f"{_names(list(map(str, means.index)))}, {words} ({basis})"
    return f"nothing is separated from maps that look at nothing ({basis})"


def _where(reading: Reading, panel: Panel) -> str:
    named = reading.named(panel)
    return f" ({escape(named)})" if named else ""


def _names(methods: Sequence[str]) -> str:
    shown = methods if len(methods) <= NAMED else methods[: NAMED - 1]
    words = [f"<strong>{escape(one)}</strong>" for one in shown]
    return listed(words if len(shown) == len(methods) else [*words, f"{len(methods) - len(shown)} others"])
