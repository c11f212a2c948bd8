"""The protocols sanity and robustness: blind controls must fail the one, and be perfect in the other."""

from __future__ import annotations

import dataclasses

import pytest

import heatproof
from heatproof import registry
from heatproof.errors import BadInput
from heatproof.protocols.robustness import Robustness
from heatproof.protocols.sanity import Sanity
from heatproof.report.run_numbers import Reading


@pytest.mark.parametrize("protocol", [Sanity(), Robustness(), Sanity("paper"), Robustness("paper")])
def test_one_study_whose_main_metrics_are_its_own(protocol):
    (study,) = protocol.studies()
    labels = {heatproof.spec.recipe.label(metric) for metric in study.metrics}
    assert set(study.notes["main"]) <= labels
    assert study.protocol == registry.name_of(protocol)[1]
    with pytest.raises(BadInput, match="need a model"):
        protocol.studies(datasets=["two_factor"])


def test_blind_maps_fail_the_sanity_checks(tmp_path):
    (study,) = Sanity().studies(methods=["saliency", "integrated_gradients(steps=16)", "random", "edges"])
    results = heatproof.run(dataclasses.replace(study, limit=4), tmp_path / "run")
    assert results.complete
    for metric in ("mprt", "mprt(order=bottom_up)", "random_logit"):
        found = results.table(metric).mean()
        assert found["random"] == found["edges"] == pytest.approx(1, abs=1e-6)
        assert found["saliency"] < 0.8
    assert results.table("efficient_mprt").mean()["edges"] == pytest.approx(0, abs=1e-9)
    axiom = results.table("sensitivity_axiom").mean()
    assert axiom["saliency"] == 0
    assert axiom["random"] == pytest.approx(0.25, abs=0.03)
    assert list(results.table("completeness_error").columns) == ["integrated_gradients(steps=16)"]
    heatproof.report(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert 'id="sanity"' in page


def test_a_map_that_ignores_the_picture_is_perfectly_robust_and_says_so(tmp_path):
    (study,) = Robustness().studies(methods=["saliency", "smoothgrad(draws=5)", "centre", "edges"])
    measures = [metric for metric in study.metrics if "representation" not in heatproof.spec.recipe.label(metric)]
    results = heatproof.run(dataclasses.replace(study, limit=3, metrics=measures), tmp_path / "run")
    assert results.complete
    for metric in set(results.metrics) - {"continuity", "single_deletion"}:
        found = results.table(metric).mean()
        assert found["centre"] == 0
        assert found["saliency"] > 0
    assert {panel.metric for panel in Reading(results).panels} == set(results.metrics)
    heatproof.report(results, tmp_path / "report.html")
    assert 'id="robustness"' in (tmp_path / "report.html").read_text()
