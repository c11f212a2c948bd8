"""The first screen: every cell is a mark of the page's own tests or a stated reason, and advice follows from marks."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from invented_run import invent

from heatproof.report.answers import answers
from heatproof.report.questions import DECLARED, USUAL, questions, unasked
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.advice import advice, limits
from heatproof.report.sections.answer import answer, careful, matrix, recommendation
from heatproof.results import Results
from heatproof.results.run_info import Accuracy, Census, run_info

IMAGES = [f"{index:05d}" for index in range(40)]
MEASURES = {"srg": "faithfulness", "mif": "faithfulness", "pointing_game": "localisation"}


def asked(models: tuple[str, ...] = ("m",), images: list[str] = IMAGES, **traits: dict) -> Results:
    """The invented run with what its metrics declare."""
    run = invent(list(models), images)
    stored = run.info.plain()
    for name, about in stored["metrics"].items():
        about |= {"measures": MEASURES[name], "main": name != "mif", **traits.get(name, {})}
    return replace(run, info=run_info(stored))


def reading_of(run: Results) -> Reading:
    found = Reading(run)
    run.__dict__.setdefault("gallery", [])
    return found


def test_a_metric_joins_the_column_of_what_it_measures_or_opens_its_own() -> None:
    found = questions(reading_of(asked(pointing_game={"question": "Signed rightly?"}, mif={"question": "Ours?"})))
    assert [one.words for one in found] == ["Confirmed by the model?", "Signed rightly?", "Ours?"]
    assert {panel.metric for panel in found[USUAL["faithfulness"]]} == {"srg"}  # mif is no main metric, and joins none
    assert DECLARED["Signed rightly?"] in found


def test_only_main_comparisons_answer_where_there_are_any() -> None:
    found = questions(reading_of(asked()))
    assert {panel.metric for panel in found[USUAL["faithfulness"]]} == {"srg"}
    every = questions(reading_of(asked(srg={"main": False})))
    assert {panel.metric for panel in every[USUAL["faithfulness"]]} == {"srg", "mif"}


def test_marks_agree_with_the_tests_of_the_page() -> None:
    reading = reading_of(asked())
    found = answers(reading)
    question = USUAL["faithfulness"]
    for method in found.methods:
        for panel, mark in found.cell(method, question).marks.items():
            beats = reading.page.tests[panel.metric, panel.dataset, panel.model].beats()
            rivals = {one for one in found.methods if one != method}
            if mark == "best":
                assert {(method, other) for other in rivals} <= beats
            if mark == "beaten":
                assert any((control, method) in beats for control in reading.blind(panel))
            if mark in ("best", "good", "behind"):
                assert {(method, control) for control in reading.blind(panel)} <= beats
    assert found.methods[0] == "lrp"


def test_no_cell_is_without_a_mark_or_a_reason() -> None:
    run = asked(models=("m", "n"))
    scores = run.scores.copy()
    lost = (scores["method"] == "saliency") & (scores["metric"] == "pointing_game")
    scores.loc[lost, ["value", "status", "note"]] = [float("nan"), "not_applicable", "saliency points at nothing"]
    gone = (scores["method"] == "lrp") & (scores["metric"] == "pointing_game")
    reading = reading_of(replace(run, scores=scores[~gone]))
    html = matrix(reading, answers(reading))
    cells = re.findall(r"<td.*?</td>", html)
    assert len(cells) == len(answers(reading).methods) * 2
    assert all(re.search(r'title="[^"]{8,}"', cell) for cell in cells)
    empty = [cell for cell in cells if ">n/a<" in cell]
    assert len(empty) == 2
    assert any("saliency points at nothing" in cell for cell in empty)
    assert any("was not run under pointing_game" in cell for cell in empty)
    assert "–" not in re.sub(r"<[^>]*>", "", html)


def test_beyond_a_screen_of_methods_the_rest_is_folded() -> None:
    run = asked()
    copies = [run.scores[run.scores["method"] == "saliency"].assign(method=f"saliency(steps={at})") for at in range(12)]
    reading = reading_of(replace(run, scores=pd.concat([run.scores, *copies])))
    shown, folded = matrix(reading, answers(reading)).split("<details")
    assert shown.count("<tr data-method") == 12
    assert folded.count("<tr data-method") == len(answers(reading).methods) - 12


def test_too_few_pictures_recommend_nothing() -> None:
    reading = reading_of(asked(images=IMAGES[:4]))
    assert "add pictures" in recommendation(reading, answers(reading))
    assert all("<strong>" not in sentence for sentence in advice(reading, answers(reading)))


def test_the_best_method_is_named_with_the_questions_it_holds_in() -> None:
    reading = reading_of(asked())
    assert recommendation(reading, answers(reading)) == (
        "Start with <strong>lrp</strong> or <strong>integrated_gradients</strong>: nothing beats them in 2 of 2 "
        "questions, and no blind map beats them anywhere."
    )
    sentences = advice(reading, answers(reading))
    assert sentences[0].startswith("<b>If the model’s own answer should confirm the map:</b> <strong>lrp</strong>")


def test_what_was_not_asked_and_what_it_would_need_is_said() -> None:
    run = asked()
    info = replace(run.info, left_out={"robustness": "needs <time>"})
    reading = reading_of(replace(run, info=info))
    said = limits(reading)
    assert "“Holds when redrawn?”" in said
    assert "robustness: needs &lt;time&gt;" in said
    assert "On the object?" not in said
    assert {one.words for one in unasked(reading)} >= {"Signed rightly?", "Keeps the axioms?"}


def test_what_came_of_the_other_questions_is_said_beside_the_share() -> None:
    run = asked()
    noisy = run.scores[run.scores["method"].isin(["lrp", "saliency", "random", "edges"])].copy()
    here = noisy["metric"] == "pointing_game"
    noisy.loc[here, "value"] = np.random.default_rng(0).normal(size=here.sum())
    mixed = reading_of(replace(run, scores=noisy))
    assert "in 1 of 2 questions (1 is open), and no blind map" in recommendation(mixed, answers(mixed))


def test_a_run_that_asks_few_questions_says_which_command_asks_all() -> None:
    assert "heatproof judge" in limits(reading_of(asked()))


def test_what_puts_the_whole_page_in_doubt_stands_on_the_first_screen() -> None:
    assert careful(reading_of(asked())) == ""
    few = asked(images=IMAGES[:4])
    assert careful(reading_of(few)).startswith("<strong>Careful:</strong> 4 pictures of two_factor under m: so few")
    wrong = Census("two_factor", "m", 40, {}, known=40, right=8, accuracy=Accuracy(0.2, 0.1, 0.35))
    both = careful(reading_of(replace(few, info=replace(few.info, pictures=(wrong,)))))
    assert both.startswith("<strong>Careful:</strong> The model is wrong on 32 of 40 pictures.")
    assert both.endswith('<a href="#pictures">1 more reason to be careful</a>')


def test_small_objects_have_tests_of_their_own() -> None:
    run = asked()
    sizes = pd.DataFrame(
        [
            ("two_factor", "m", "lrp", "region_share", name, at / 100, "ok", "", 0.1)
            for at, name in enumerate(IMAGES, 1)
        ],
        columns=list(run.scores.columns[:9]),
    )
    stored = run.info.plain()
    stored["metrics"]["region_share"] = {"name": "region_share", "measures": "pictures", "higher_is_better": True}
    scores = pd.concat([run.scores, sizes])
    reading = reading_of(replace(run, scores=scores, info=run_info(stored)))
    said = [sentence for sentence in advice(reading, answers(reading)) if "small objects" in sentence]
    assert len(said) == 1
    assert re.search(r"pointing_game on the 1[234] pictures with the smallest regions", said[0])


@pytest.mark.parametrize("signed", [True, False])
def test_signs_are_advised_on_where_methods_differ_in_them(signed: bool) -> None:
    run = asked()
    stored = run.info.plain()
    for about in stored["methods"].values():
        about["signed"] = signed or about["summary"] == "What saliency does."
    reading = reading_of(replace(run, info=run_info(stored)))
    said = [sentence for sentence in advice(reading, answers(reading)) if "If you need signs" in sentence]
    assert len(said) == (0 if signed else 1)


def test_a_run_without_methods_has_no_first_screen() -> None:
    run = asked()
    controls = run.scores["method"].isin(["edges", "random", "oracle"])
    assert answer(reading_of(replace(run, scores=run.scores[controls]))) is None
