"""Fewer points of a curve: what they cost, that the ends stay, and that a chosen grid is left alone."""

from __future__ import annotations

import pytest
import torch

import heatproof
from heatproof.attribute import attribute
from heatproof.audit.model_scope import ROMS, RandomOrders
from heatproof.errors import BadInput
from heatproof.methods import InputXGradient
from heatproof.metrics import LIF, LRG, MIF, SRG, Deletion, Insertion, Sparseness
from heatproof.occlusion.flip_order import FAST, removals
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.protocols.pixel_flipping import PixelFlipping
from heatproof.run.until import Solid, prepared
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.testing import stage
from heatproof.traits import fast_of

CHEAP = Occlusion(Mean(), Grid(5), 1)


def test_a_fast_grid_has_nine_steps_at_most_and_both_ends() -> None:
    moved = removals((25, 6, 400), "fast", 21)
    assert moved.shape[1] == FAST == 9
    assert moved[:, 0].tolist() == [0, 0, 0]
    assert moved[:, -1].tolist() == [25, 6, 400]
    assert len(set(moved[1].tolist())) == 7  # six segments have no more places
    assert removals((25,), "fast", 5).shape[1] == 5


def test_fast_scores_are_areas_of_fewer_points_close_to_those_of_all() -> None:
    model, batch = stage()
    attribution = attribute(model, batch, InputXGradient())
    full, fast = MIF(CHEAP, points=26)(attribution), MIF(CHEAP, steps="fast")(attribution)
    assert full.curve is not None
    assert fast.curve is not None
    assert (full.curve.x.shape[1], fast.curve.x.shape[1]) == (26, 9)
    assert 0 < (full.values - fast.values).abs().max() < 0.1
    both = SRG(CHEAP, steps="fast")(attribution).values
    assert torch.equal(both, LIF(CHEAP, steps="fast")(attribution).values - fast.values)


@pytest.mark.parametrize("made", [SRG(), MIF(), LIF(), LRG(), Deletion(), Insertion(), ROMS()])
def test_metrics_with_curves_declare_a_fast_form_that_is_its_own(made) -> None:
    fast = fast_of(made)
    assert fast != made
    assert type(fast) is type(made)
    assert fast_of(fast) == fast
    assert recipe.build(recipe.plain(fast)) == fast


@pytest.mark.parametrize(
    "chosen", [SRG(points=5), MIF(steps="paper"), Deletion(points=12), ROMS(how=RandomOrders(points=4))]
)
def test_a_grid_that_was_chosen_stays(chosen) -> None:
    assert fast_of(chosen) == chosen
    assert fast_of(Sparseness()) == Sparseness()


def test_a_run_that_stops_when_it_is_solid_takes_fast_points_unless_told_not_to() -> None:
    (study,) = PixelFlipping().studies(methods=["saliency", "grad_cam"])
    (fast,) = prepared([study], Solid())
    labels = {recipe.label(metric) for metric in fast.metrics}
    assert all("steps=fast" in label for label in labels)
    assert set(fast.notes["main"]) <= labels  # the notes of the protocol name metrics that are there
    assert {setup["srg"] for setup in fast.notes["setups"]} <= labels
    (again,) = prepared([fast], Solid())
    assert [recipe.plain(one) for one in again.metrics] == [recipe.plain(one) for one in fast.metrics]
    (full,) = prepared([study], Solid(steps="full"))
    assert full.metrics == study.metrics
    with pytest.raises(BadInput, match="'fast' or 'full'"):
        Solid(steps="some")  # type: ignore[arg-type]


def test_rules_of_before_had_full_curves() -> None:
    stored = {name: value for name, value in Solid().plain().items() if name != "steps"}
    assert Solid.from_plain(stored).steps == "full"
    assert Solid.from_plain(Solid().plain()) == Solid()


def test_metrics_that_are_named_are_followed_under_their_fast_name(tmp_path) -> None:
    study = Study(["embedded:object"], ["two_factor"], ["saliency", "grad_cam", "random"], [SRG(CHEAP), "sparseness"])
    results = heatproof.run(study, tmp_path, until=Solid(max_images=20, metric="srg"))
    (label,) = [name for name in results.metrics if name.startswith("srg")]
    assert "steps=fast" in label
    assert {one.metric for one in results.info.until.pairs} == {label}
    assert torch.tensor([len(x) for x in results.curves["x"]]).max() <= 41
