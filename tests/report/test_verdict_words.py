"""The lead must not claim more than the cards below it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from heatproof.report import report
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
