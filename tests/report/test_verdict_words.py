"""The lead must not claim more than the cards below it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from heatproof.report import report
from heatproof.report.reading import Reading
from heatproof.report.sections.verdict import against_controls, headline
from heatproof.results import Results


def results(images: int, missing: bool = False) -> Results:
    scores = {"good": 0.9, "bad": 0.1}
    rows = [
        {"dataset": "d", "model": "m", "method": method, "metric": "srg", "image": f"{i}", "seconds": 0.1}
        | {"value": float("nan") if missing else value + 0.001 * i, "note": "no" if missing else ""}
        | {"status": "not_applicable" if missing else "ok"}
        for method, value in scores.items()
        for i in range(images)
    ]
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, {"metrics": {"srg": {"higher_is_better": True}}})


@pytest.mark.parametrize(("images", "clear"), [(4, False), (20, True)])
def test_a_first_place_is_clear_only_if_the_tests_say_so(images: int, clear: bool, tmp_path: Path) -> None:
    page = report(results(images), tmp_path / "report.html").read_text()
    assert ("and beats every other method" in page) == clear
    assert ("not clear of those behind it" in page) != clear


def test_a_comparison_without_scores_is_said_in_words(tmp_path: Path) -> None:
    page = report(results(4, missing=True), tmp_path / "report.html").read_text()
    assert "must hold at least one" not in page
    assert "got shape" not in page


def test_a_shared_first_place_is_said_to_count_twice() -> None:
    rows = []
    for metric, values in {"a": (0.9, 0.9, 0.1), "b": (0.2, 0.8, 0.1)}.items():
        for method, value in zip(("x", "y", "z"), values, strict=True):
            rows += [
                {"dataset": "d", "model": "m", "method": method, "metric": metric, "image": f"{i}", "seconds": 0.1}
                | {"value": value + 0.001 * i, "note": "", "status": "ok"}
                for i in range(4)
            ]
    metrics = {name: {"higher_is_better": True} for name in ("a", "b")}
    told = headline(Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, {"metrics": metrics})))
    assert told.startswith("<strong>y</strong> comes first in all 2 comparisons")
    rows = [{**row, "value": -row["value"]} if row["metric"] == "b" else row for row in rows]
    told = headline(Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, {"metrics": metrics})))
    assert "x in 1" in told or "y in 1" in told
    assert "(a shared first place counts for each)" in told


def test_controls_that_fare_alike_are_named_together() -> None:
    rows = []
    for method, value in {"x": 0.9, "random": 0.1, "edges": 0.1, "oracle": 1.9}.items():
        rows += [
            {"dataset": "d", "model": "m", "method": method, "metric": "a", "image": f"{i}", "seconds": 0.1}
            | {"value": value + 0.001 * i, "note": "", "status": "ok"}
            for i in range(20)
        ]
    methods = {name: {"control": name != "x"} for name in ("x", "random", "edges", "oracle")}
    info = {"metrics": {"a": {"higher_is_better": True}}, "methods": methods}
    reading = Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, info))
    assert against_controls(reading, reading.panels[0]) == [
        "Controls random and edges, each: every method beats it.",
        "Control oracle: it beats every method.",
    ]
