"""The protocol's studies, run small from end to end, and its section of the report."""

from __future__ import annotations

import pandas as pd
import pytest

from heatproof import recipe
from heatproof.errors import BadInput
from heatproof.methods.controls import Centre, Random
from heatproof.methods.gradients import Saliency
from heatproof.protocols.in_distribution import InDistribution, contestants
from heatproof.report.reading import Reading
from heatproof.report.sections.in_distribution import in_distribution, noted, separation
from heatproof.run import run
from heatproof.study import Study


def test_the_papers_eleven_methods_stand_beside_their_controls():
    assert len(contestants("fast")) == len(contestants("paper")) == 11
    judged, examined = InDistribution().studies()
    labels = [recipe.label(one) for one in judged.methods]
    assert {"random", "oracle", "saliency"} <= set(labels)
    assert any(label.startswith("inverted") for label in labels)
    assert set(examined.notes["audit"]) == {recipe.label(one) for one in examined.metrics}
    told = pd.DataFrame(examined.notes["audit"].values())
    assert told.groupby("evaluation")["statistic"].nunique().eq(9).all()


def test_its_recipe_can_be_read_back_and_bad_settings_are_refused():
    protocol = InDistribution(profile="paper", draws=3)
    assert recipe.build(recipe.plain(protocol)) == protocol
    with pytest.raises(BadInput, match="profile"):
        InDistribution(profile="quick")
    with pytest.raises(BadInput, match="need a model"):
        InDistribution().studies(datasets=["somewhere"])


def test_pictures_of_ones_own_are_audited_without_twins():
    _, examined = InDistribution().studies(models=["embedded:object"], datasets=["two_factor"])
    assert "flipping, twin" not in {about["evaluation"] for about in examined.notes["audit"].values()}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    protocol = InDistribution(draws=1, pictures=2, quality=("psnr",))
    judged, examined = protocol.studies(methods=[Saliency(), Centre(), Random()])
    kept = {"flipping, zero", "flipping, twin", "fud", "infidelity"}
    few = [one for one in examined.metrics if examined.notes["audit"][recipe.label(one)]["evaluation"] in kept]
    notes = {"audit": {recipe.label(one): examined.notes["audit"][recipe.label(one)] for one in few}}
    small = Study(judged.models, judged.datasets, judged.methods, judged.metrics[:2], "in_distribution", limit=2)
    audit = Study(judged.models, judged.datasets, [Centre()], few, "in_distribution", limit=2, notes=notes)
    return run([small, audit], tmp_path_factory.mktemp("run"))


def test_every_row_of_a_small_run_is_there(results):
    assert results.complete
    fud = results.rows("fud(draws=1, controls=[random,no_guidance,guidance_only])")
    assert (fud["status"] == "ok").all()
    assert fud["value"].between(0, 1).all()
    assert all({"random", "no guidance", "guidance only"} == set(noted(note)) for note in fud["note"])


def test_the_section_shows_the_controls_and_the_audit(results):
    page = in_distribution(Reading(results))
    for word in ("FUD and its controls", "flipping, zero", "flipping, twin", "AUROC", "τ inverted"):
        assert word in page
    energy = next(
        label
        for label, about in results.info["studies"][1]["notes"]["audit"].items()
        if about == {"evaluation": "flipping, zero", "statistic": "energy"}
    )
    area, passing = separation(results.curves, energy)
    assert 0 <= area <= 1
    assert 0 <= passing <= 1


def test_a_run_without_this_protocol_has_no_such_section(results):
    class Other:
        scores, curves, gallery, info = results.scores.iloc[:0], results.curves.iloc[:0], (), {}

    assert in_distribution(Reading(Other())) is None
