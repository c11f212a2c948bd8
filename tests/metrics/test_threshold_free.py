"""The registered localisation metrics: what they refuse, what they remark on, and how controls order."""

from __future__ import annotations

import dataclasses

import networks
import pytest
import torch

from heatproof.attribute import attribute
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.controls import Centre, Inverted, Oracle, Random
from heatproof.metrics._support.iou import auc_iou, exact_auc_iou, iou_curve, normalise
from heatproof.metrics.auc_iou import AUCIoU, BestIoU, ExactAUCIoU, IoUAt, IoUByArea
from heatproof.metrics.average_precision import AUROC, AveragePrecision
from heatproof.metrics.pointing_game import PointingGame
from heatproof.metrics.region_share import RegionShare, shares
from heatproof.metrics.relevance_mass import RelevanceMass, RelevanceRank
from heatproof.types import Attribution

ALL = (
    AUCIoU(),
    ExactAUCIoU(),
    IoUAt(),
    BestIoU(),
    AveragePrecision(),
    AUROC(),
    PointingGame(),
    RelevanceMass(),
    RelevanceRank(),
    IoUByArea(),
)


@pytest.fixture(scope="module")
def stage():
    model, batch = networks.linear(), networks.batch(4)
    regions = torch.zeros(batch.images[:, 0].shape, dtype=torch.bool)
    for i in range(4):
        regions[i, 2 + i : 12 + 3 * i, 5 : 15 + i] = True
    return model, dataclasses.replace(batch, regions=regions)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: type(metric).__name__)
def test_pictures_without_regions_are_not_applicable(stage, metric):
    model, batch = stage
    bare = dataclasses.replace(batch, regions=None)
    with pytest.raises(NotApplicable, match="no regions"):
        metric(attribute(model, bare, Random()))


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: type(metric).__name__)
def test_the_oracle_beats_noise_and_noise_beats_the_oracle_turned_round(stage, metric):
    model, batch = stage
    oracle, noise, turned = (
        metric(attribute(model, batch, control)).values.mean()
        for control in (Oracle(), Random(distribution="uniform"), Inverted(Oracle()))
    )
    assert oracle > noise
    if not isinstance(metric, AUCIoU | ExactAUCIoU | IoUAt | RelevanceMass):  # magnitudes do not turn round
        assert noise > turned or (isinstance(metric, PointingGame) and turned == 0)  # few hits are none
    if not isinstance(metric, IoUByArea):  # where the share taken is fixed, no map can be perfect
        assert float(oracle) == pytest.approx(1)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: type(metric).__name__)
def test_degenerate_pictures_are_remarked_on(stage, metric):
    model, batch = stage
    regions = batch.regions.clone()
    regions[1], regions[2] = False, True
    batch = dataclasses.replace(batch, regions=regions)
    maps = attribute(model, batch, Centre()).maps
    maps[0] = 0.0
    scored = metric(Attribution(model, batch, Centre(), maps))
    assert scored.notes[0] == "the map is constant"
    assert scored.notes[1] == "the region is empty"
    assert scored.notes[2] == "the region covers everything"
    assert scored.notes[3] == ""
    assert all(note for value, note in zip(scored.values, scored.notes, strict=True) if torch.isnan(value))


def test_the_metrics_are_the_functions_on_normalised_maps(stage):
    model, batch = stage
    found = attribute(model, batch, Random())
    heat = normalise(found.maps, "abs_p99")
    scored = AUCIoU()(found)
    assert torch.equal(scored.values, auc_iou(heat, batch.regions))
    assert torch.equal(scored.curve.y, iou_curve(heat, batch.regions))
    assert scored.curve.x.tolist() == [k / 20 for k in range(1, 20)]
    paper = AUCIoU(area="paper")(found).values
    assert torch.allclose(paper, 0.9 * scored.values)
    assert torch.equal(ExactAUCIoU()(found).values, exact_auc_iou(heat, batch.regions))
    assert torch.equal(IoUAt(0.5)(found).values, iou_curve(heat, batch.regions)[:, 9])


def test_an_all_negative_map_has_no_evidence_to_place(stage):
    model, batch = stage
    found = Attribution(model, batch, Random(), -torch.rand(batch.regions.shape) - 0.1)
    scored = RelevanceMass()(found)
    assert torch.isnan(scored.values).all()
    assert set(scored.notes) == {"the map is constant"}
    assert RelevanceMass(sign="absolute")(found).values.isfinite().all()
    assert AUCIoU(rule="positive")(found).notes[0] == "the map is constant"


def test_the_region_share_is_the_data_sets_own_where_it_knows_better(stage):
    model, batch = stage
    found = attribute(model, batch, Oracle())
    assert torch.allclose(RegionShare()(found), batch.regions.float().mean((1, 2)))
    message = dataclasses.replace(batch, labels={"region_share": torch.tensor([0.1, 0.2, 0.3, 0.4])})
    assert torch.equal(RegionShare()(attribute(model, message, Oracle())), message.labels["region_share"])


def test_the_shares_of_a_data_set_are_those_of_its_pictures():
    from heatproof.data.two_factor.dataset import TwoFactor

    dataset = TwoFactor(count=3)
    assert shares(dataset) == pytest.approx(dataset.batch(range(3)).regions.float().mean((1, 2)).tolist())


def test_the_ends_of_the_exact_area_are_fields(stage):
    model, batch = stage
    attribution = attribute(model, batch, Centre())
    heat = normalise(attribution.maps, "abs_p99")
    for low, high in ((0.05, 0.95), (0.0, 0.5), (0.4, 0.8)):
        found = ExactAUCIoU(low=low, high=high)(attribution).values
        assert torch.equal(found, exact_auc_iou(heat, batch.regions, low, high))
    assert not torch.equal(ExactAUCIoU()(attribution).values, ExactAUCIoU(high=0.5)(attribution).values)


def test_the_sign_decides_which_pixels_are_taken_first(stage):
    model, batch = stage
    turned = attribute(model, batch, Inverted(Oracle()))
    oracle = IoUByArea()(attribute(model, batch, Oracle())).values
    assert torch.equal(IoUByArea(sign="absolute")(turned).values, oracle)
    assert bool((IoUByArea()(turned).values < oracle).all())


@pytest.mark.parametrize(
    ("metric", "fields", "words"),
    [
        (IoUAt, {"threshold": 30}, r"threshold must lie in \[0, 1\].*got 30"),
        (IoUAt, {"threshold": -0.1}, "threshold must lie in"),
        (AUCIoU, {"thresholds": 1}, "thresholds must be at least 2"),
        (IoUByArea, {"areas": 1}, "areas must be at least 2"),
        (ExactAUCIoU, {"low": 0.9, "high": 0.1}, "low < high"),
    ],
)
def test_settings_that_mean_nothing_are_refused(metric, fields, words):
    with pytest.raises(BadInput, match=words):
        metric(**fields)
