"""The protocol's studies, run small from end to end, and its section of the report."""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd
import pytest
from networks import batch

from heatproof.audit.other_classes import OtherClasses
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.methods.controls import Centre, Constant, Edges, Inverted, Random
from heatproof.methods.expected_gradients import ExpectedGradients
from heatproof.methods.mean_region import MeanRegion
from heatproof.methods.mfaba import MFABA
from heatproof.methods.saliency import Saliency
from heatproof.protocols.in_distribution import NATURAL, InDistribution, contestants
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.in_distribution import in_distribution, separation
from heatproof.report.typeset import MISSING
from heatproof.results.protocol_notes import InDistributionNotes
from heatproof.results.run_info import RunInfo
from heatproof.run.loop import run
from heatproof.spec import recipe
from heatproof.spec.study import Study


class Few:
    """A user's pictures, as large as those that the prior draws."""

    name = "few"

    def __len__(self):
        return 2

    def ids(self):
        return ("a", "b")

    def batch(self, indices, /):
        return replace(batch(2, size=64).select(indices), ids=tuple(self.ids()[i] for i in indices))

    def digest(self, indices, /):
        return str(indices)


def test_the_papers_eleven_methods_stand_beside_their_controls():
    assert len(contestants("fast")) == len(contestants("paper")) == 11
    judged, examined = InDistribution().studies()
    labels = [recipe.label(one) for one in judged.methods]
    assert {"random", "oracle", "saliency"} <= set(labels)
    assert any(label.startswith("inverted") for label in labels)
    assert set(examined.notes["audit"]) == {recipe.label(one) for one in examined.metrics}
    message = pd.DataFrame(examined.notes["audit"].values())
    natural = message["evaluation"] == NATURAL
    assert message[natural]["statistic"].tolist() == ["energy"]
    assert message[~natural].groupby("evaluation")["statistic"].nunique().eq(10).all()


@pytest.mark.parametrize("profile", ["fast", "paper"])
def test_expected_gradients_begins_at_training_pictures_where_there_are_any(profile):
    protocol = InDistribution(profile=profile)
    for datasets, wanted in ((None, "two_factor(split=train)"), ([TwoFactor(seed=3)], "two_factor(split=train)")):
        judged, _ = protocol.studies(models=["embedded:object"], datasets=datasets)
        expected = next(one for one in judged.methods if isinstance(one, ExpectedGradients))
        assert recipe.label(expected.background) == judged.notes["background"] == wanted
        assert not set(expected.background.ids()) & set(judged.datasets[0].ids())
    judged, _ = protocol.studies(models=["embedded:object"], datasets=[Few()])
    expected = next(one for one in judged.methods if isinstance(one, ExpectedGradients))
    assert expected.background == judged.notes["background"] == "gaussian"


def test_user_methods_are_reported_beside_the_random_and_an_inverted_order():
    judged, examined = InDistribution().studies(methods=["centre", "saliency", "deconvnet"])
    labels = [recipe.label(one) for one in judged.methods]
    assert labels == ["centre", "saliency", "deconvnet", "random", "edges", "constant", "mean_region", "inverted"]
    assert judged.methods[-1] == Inverted(Saliency())
    assert [recipe.label(one) for one in examined.methods] == ["centre", "saliency"]
    assert examined.notes["audited"] == "the first 2 of 3 methods"
    both, examined = InDistribution().studies(methods=[Random(), Inverted(MFABA())])
    assert list(both.methods) == [Random(), Inverted(MFABA()), Edges(), Centre(), Constant(), MeanRegion()]
    assert list(examined.methods) == [Random(), Inverted(MFABA())]
    assert "audited" not in examined.notes


def test_its_recipe_can_be_read_back_and_bad_settings_are_refused():
    protocol = InDistribution(profile="paper", draws=3)
    assert recipe.build(recipe.plain(protocol)) == protocol
    with pytest.raises(BadInput, match="profile"):
        InDistribution(profile="quick")
    with pytest.raises(BadInput, match="window"):
        InDistribution(window="x")
    with pytest.raises(BadInput, match="quality"):
        InDistribution(quality=("lpips",))
    with pytest.raises(BadInput, match="need a model"):
        InDistribution().studies(datasets=["somewhere"])


def test_the_reference_of_natural_pictures_is_of_the_data_that_is_judged():
    def references(**how):
        _, examined = InDistribution().studies(models=["embedded:object"], **how)
        return [one.of.pictures for one in examined.metrics if isinstance(getattr(one, "of", None), OtherClasses)]

    assert references() == [TwoFactor()]
    assert references(datasets=[TwoFactor(seed=3)]) == [TwoFactor(seed=3)]
    assert references(datasets=["two_factor", TwoFactor(seed=3)]) == []  # which of the two?
    assert references(datasets=[Few()]) == []  # it has no recipe that could stand in a metric's


def test_pictures_of_ones_own_are_audited_without_twins():
    _, examined = InDistribution().studies(models=["embedded:object"], datasets=["two_factor"])
    assert "flipping, twin" not in {about["evaluation"] for about in examined.notes["audit"].values()}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    protocol = InDistribution(draws=1, pictures=2, quality=("psnr", "psnr_masked"))
    judged, examined = protocol.studies(methods=[Saliency(), Centre(), Random()])
    kept = {NATURAL, "flipping, zero", "flipping, twin", "fud", "infidelity"}
    few = [one for one in examined.metrics if examined.notes["audit"][recipe.label(one)]["evaluation"] in kept]
    notes = {"audit": {recipe.label(one): examined.notes["audit"][recipe.label(one)] for one in few}}
    contestants = [Saliency(), Centre(), Random(), Inverted(Saliency())]
    small = Study(judged.models, judged.datasets, contestants, judged.metrics[:2], "in_distribution", limit=2)
    audit = Study(judged.models, judged.datasets, [Centre()], few, "in_distribution", limit=2, notes=notes)
    return run([small, audit], tmp_path_factory.mktemp("run"))


def row_of(page: str, name: str) -> list[str]:
    found = re.search(rf'<th scope="row">{name}</th>(.*?)</tr>', page)
    assert found is not None
    return re.findall(r"<td[^>]*>([^<]*)</td>", found[1])


def test_every_row_of_a_small_run_is_there(results):
    assert results.complete
    label = "fud(draws=1, controls=[random,no_guidance,guidance_only,prior_only])"
    fud = results.rows(label)
    assert (fud["status"] == "ok").all()
    assert fud["value"].between(0, 1).all()
    beside = results.details[results.details["metric"] == label].groupby(["method", "image"])["detail"].agg(set)
    assert len(beside) == len(fud)
    assert all({"clean", "random", "no_guidance", "guidance_only", "prior_only"} <= names for names in beside)


def test_the_section_shows_the_controls_and_the_audit(results):
    page = in_distribution(Reading(results))
    for word in ("FUD and its controls", "flipping, zero", "flipping, twin", "AUROC", "τ inverted"):
        assert word in page
    assert "PSNR, removed pixels" in page
    assert f"“{NATURAL.capitalize()}” are intact" in page
    natural, zero = (row_of(page, name) for name in (NATURAL, "flipping, zero"))
    assert len(natural) == len(zero)
    assert natural[2:] == [MISSING] * (len(zero) - 2)  # of energy alone
    assert MISSING not in natural[:2]
    assert float(zero[3]) < float(zero[2])  # the removed pixels alone are further off than the whole
    energy = next(
        label
        for label, about in results.info.studies[1].noted(InDistributionNotes).audit.items()
        if (about.evaluation, about.statistic) == ("flipping, zero", "energy")
    )
    area, passing = separation(results.curves, energy)
    assert 0 <= area <= 1
    assert 0 <= passing <= 1


def test_a_run_without_this_protocol_has_no_such_section(results):
    class Other:
        scores, curves, gallery, info = results.scores.iloc[:0], results.curves.iloc[:0], (), RunInfo()

    assert in_distribution(Reading(Other())) is None
