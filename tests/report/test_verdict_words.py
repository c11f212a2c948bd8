"""The lead must not claim more than the cards below it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heatproof.report import report
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.missing import missing
from heatproof.report.sections.ranking import ranking
from heatproof.report.sections.significance import matrix
from heatproof.report.sections.verdict import against_controls, headline
from heatproof.results import Results
from heatproof.results.run_info import run_info
from heatproof.stats.page import compare_means


def results(images: int, missing: bool = False) -> Results:
    scores = {"good": 0.9, "bad": 0.1}
    rows = [
        {"dataset": "d", "model": "m", "method": method, "metric": "srg", "image": f"{i}", "seconds": 0.1}
        | {"value": float("nan") if missing else value + 0.001 * i * value, "note": "no" if missing else ""}
        | {"status": "not_applicable" if missing else "ok"}
        for method, value in scores.items()
        for i in range(images)
    ]
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info({"metrics": {"srg": {"higher_is_better": True}}}))


@pytest.mark.parametrize(("images", "clear"), [(4, False), (20, True)])
def test_a_first_place_is_clear_only_if_the_tests_say_so(images: int, clear: bool, tmp_path: Path) -> None:
    page = report(results(images), tmp_path / "report.html").read_text()
    assert ("and beats every other method" in page) == clear
    assert ("not clear of those behind it" in page) != clear


def test_a_comparison_without_scores_is_reported_in_words(tmp_path: Path) -> None:
    page = report(results(4, missing=True), tmp_path / "report.html").read_text()
    assert "must hold at least one" not in page
    assert "got shape" not in page


def test_scores_that_say_little_are_listed() -> None:
    run = results(4)
    run.scores.loc[run.scores["image"] == "0", "note"] = "the region is empty"
    message = missing(Reading(run))
    assert message is not None
    assert "every requested score is there. 2 scores that are counted may say little: the" in message
    assert message.count("the region is empty</td>") == 1
    whole = missing(Reading(results(4)))
    assert whole is not None
    assert "little" not in whole


def test_a_shared_first_place_is_reported_to_count_twice() -> None:
    rows = []
    for metric, values in {"a": (0.9, 0.9, 0.1), "b": (0.2, 0.8, 0.1)}.items():
        for method, value in zip(("x", "y", "z"), values, strict=True):
            rows += [
                {"dataset": "d", "model": "m", "method": method, "metric": metric, "image": f"{i}", "seconds": 0.1}
                | {"value": value + 0.001 * i, "note": "", "status": "ok"}
                for i in range(8)
            ]
    metrics = {name: {"higher_is_better": True} for name in ("a", "b")}
    message, _ = headline(Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info({"metrics": metrics}))))
    assert message.startswith("<strong>y</strong> comes first in all 2 comparisons")
    rows = [{**row, "value": -row["value"]} if row["metric"] == "b" else row for row in rows]
    message, _ = headline(Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info({"metrics": metrics}))))
    assert "x in 1" in message or "y in 1" in message
    assert "(a shared first place counts for each)" in message


def test_controls_that_fare_alike_are_named_together() -> None:
    rows = []
    for method, value in {"x": 0.9, "random": 0.1, "edges": 0.1, "oracle": 1.9}.items():
        rows += [
            {"dataset": "d", "model": "m", "method": method, "metric": "a", "image": f"{i}", "seconds": 0.1}
            | {"value": value + 0.001 * i * value, "note": "", "status": "ok"}
            for i in range(20)
        ]
    methods = {
        name: {"control": name != "x", "blind": name in ("random", "edges")}
        for name in ("x", "random", "edges", "oracle")
    }
    info = {"metrics": {"a": {"higher_is_better": True}}, "methods": methods}
    reading = Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info)))
    assert against_controls(reading, reading.panels[0]) == [
        "Blind maps (random and edges): every method beats all of them. The strongest is random (0.101).",
        "Control oracle: it beats every method.",
    ]


def test_a_ranking_says_what_its_metric_hides() -> None:
    run = results(20)
    hiding = {"higher_is_better": True, "hides": "25 rectangles, filled with ImageNet's mean colour"}
    page = ranking(Reading(replace(run, info=run_info({"metrics": {"srg": hiding}}))))
    assert page is not None
    assert "Hides 25 rectangles, filled with ImageNet&#x27;s mean colour." in page


def with_controls(images: int) -> Results:
    """Three methods close together and many controls: as one family of tests the controls would drown them."""
    dice = np.random.default_rng(1)
    levels = {"a": 0.14, "b": 0.06, "c": 0.0} | {f"control{at}": 0.07 for at in range(8)}
    rows = [
        {"dataset": "d", "model": "m", "method": method, "metric": "srg", "image": f"{i}", "seconds": 0.1}
        | {"value": level + wobble, "note": "", "status": "ok"}
        for method, level in levels.items()
        for i, wobble in enumerate(dice.normal(0, 0.14, images))
    ]
    methods = {name: {"control": name.startswith("control")} for name in levels}
    info = {"metrics": {"srg": {"higher_is_better": True}}, "methods": methods}
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info))


def test_cards_headline_and_matrix_tell_of_the_same_tests() -> None:
    reading = Reading(with_controls(24))
    panel = reading.panels[0]
    tests = reading.pairs(panel)
    assert tests is not None
    own = tests.frame[tests.frame["controls"] == 0]
    won = {(row["winner"], row["method_a"], row["method_b"]) for row in own[own["significant"]].to_dict("records")}
    alone = compare_means(reading.contenders(panel)).frame
    assert won == {
        (row["winner"], row["method_a"], row["method_b"]) for row in alone[alone["significant"]].to_dict("records")
    }
    assert won
    together = compare_means(reading.table(panel)).frame  # one family of all 55 pairs finds less: the case is telling
    named = together["method_a"].isin(list("abc")) & together["method_b"].isin(list("abc"))
    assert together[named]["significant"].sum() < len(won)
    output = " ".join(reading.verdict(panel))
    drawn = matrix(reading, panel, tests)
    for winner, a, b in won:
        loser = b if winner == a else a
        assert re.search(rf"\b{winner}\b[^.]* beats? [^.]*\b({loser}\b|everything else)", output)
        assert re.search(rf'<g class="hp\d"><title>{winner} − {loser}:', drawn)
    clear = {loser for winner, a, b in won for loser in (a, b) if winner == "a"} >= {"b", "c"}
    assert ("and beats every other method" in headline(reading)[0]) == clear


@pytest.mark.parametrize("images", [3, 5])
def test_too_few_images_are_reported_as_too_few_for_controls(images: int) -> None:
    reading = Reading(with_controls(images))
    (message,) = against_controls(reading, reading.panels[0])
    assert message.endswith(f"these {images} images are too few to tell any method from a control.")
    assert "separated" not in message
