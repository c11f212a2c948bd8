"""The protocol from studies to its section of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from heatproof.errors import BadInput
from heatproof.methods.cam import GradCam
from heatproof.methods.controls import Constant, Edges
from heatproof.protocols.relative_importance import RelativeImportance, blind, heatmaps
from heatproof.report import report
from heatproof.results import Results
from heatproof.run import run

FEW = [GradCam(), Constant(), Edges()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    studies = RelativeImportance(pictures=6, robustness=False).studies(methods=FEW)
    return run(studies, tmp_path_factory.mktemp("run"), device="cpu")


def test_the_contestants_are_the_papers_nine() -> None:
    mcs = RelativeImportance(pictures=2, robustness=False, series=False).studies()[0]
    contestants = [method for method in mcs.methods if not getattr(method, "control", False)]
    assert len(contestants) == 9
    assert len(heatmaps("default")) == 8
    assert all(getattr(method, "control", False) for method in blind())


def test_every_question_has_its_baseline_beside_it(finished: Results) -> None:
    names = {one["name"] for one in finished.info["metrics"].values()}
    assert names == {"mcs", "idr", "iir", "iir_change", "mcs_relative"}
    labels = set(finished.metrics)
    assert {"idr(region=moved)", "idr(region=anywhere)", "idr(region=pixels)", "iir(region=moved)"} <= labels
    assert not (finished.scores["status"] == "failed").any()


def test_blind_controls_score_what_blind_maps_must(finished: Results) -> None:
    def mean(metric: str, method: str) -> float:
        rows = finished.rows(metric)
        return float(rows[(rows["method"] == method) & (rows["status"] == "ok")]["value"].mean())

    mcs = next(label for label in finished.metrics if label == "mcs")
    assert mean(mcs, "edges") == 0
    assert mean("mcs_relative", "edges") == 0
    assert mean("idr", "constant") == 0.5
    assert mean("iir", "constant") == 1.0
    assert mean(mcs, "grad_cam") > 0.1


def test_the_series_has_every_k_and_its_drop(finished: Results) -> None:
    series = next(one for one in finished.info["studies"] if one["notes"].get("part") == "series")
    assert len(series["models"]) == 9
    drops = {spec: row["with_object"] - row["without_object"] for spec, row in series["notes"]["series"].items()}
    assert len(drops) == 10
    # An object that goes with one scene alone matters; one that is everywhere hardly does.
    assert drops["embedded:scene_k1"] > drops["embedded:scene_k10"] + 0.1


def test_the_report_shows_premises_questions_series_and_pairs(finished: Results, tmp_path: Path) -> None:
    page = Path(report(finished, tmp_path / "report.html")).read_text()
    for words in ("The premises", "They hold", "Model contrast", "Input dependence", "Input independence"):
        assert words in page
    for words in ("The k-series", "Pearson r with the drop", "The same picture under both models", "blind"):
        assert words in page
    assert "do not hold here" not in page


def test_models_that_violate_the_premises_are_flagged(tmp_path: Path) -> None:
    swapped = RelativeImportance(pictures=2, robustness=False).studies(
        ["embedded:scene", "embedded:object"], methods=[Constant()]
    )
    page = Path(report(run(swapped, tmp_path / "run", device="cpu"), tmp_path / "report.html")).read_text()
    assert "do not hold here" in page
    assert "objects that are not there" in page
    assert "points of accuracy when objects are removed" in page


def test_pictures_of_ones_own_need_two_or_three_models() -> None:
    with pytest.raises(BadInput, match="models of one's own"):
        RelativeImportance().studies(datasets=["two_factor"])
    with pytest.raises(BadInput, match="got 1"):
        RelativeImportance().studies(["embedded:object"])
