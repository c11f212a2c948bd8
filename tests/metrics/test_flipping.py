"""Pixel flipping: the identities of the paper, additive models where the optimum is known, ties, grids."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import batch, linear, small_cnn
from torch import Tensor, nn

from heatproof.attribute import attribute
from heatproof.audit.model_scope import NROMS, ROMS
from heatproof.errors import NotApplicable
from heatproof.metrics.pixel_flipping import LIF, LRG, MIF, MRG, SRG, Flipping
from heatproof.occlusion.flip_order import area, lots, pooled, removal_curve, removals
from heatproof.occlusion.game import Game, Occlusion, game_of
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.uniform import Uniform
from heatproof.occlusion.segmenters.felzenszwalb import Felzenszwalb
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.spec import recipe
from heatproof.types import Attribution, Batch, Maps, Model

BLACK = Occlusion(Constant(), Grid(3))


def noise(shown: Batch, seed: int = 0) -> Maps:
    return torch.randn(len(shown), *shown.images.shape[2:], generator=torch.Generator().manual_seed(seed))


def answered(model: Model, shown: Batch, maps: Maps) -> Attribution:
    return attribute(model, shown, lambda model, batch: maps)


def additive(shown: Batch) -> tuple[Model, Maps]:
    """A linear model without bias, and every pixel's true contribution to the target's logit."""
    model = linear()
    weights = model.network.fc.weight[shown.targets].view_as(shown.images)
    return model, (weights * shown.images).sum(1).detach()


@settings(max_examples=9)
@given(st.integers(0, 1000), st.sampled_from([BLACK, Occlusion(), Occlusion(Uniform(), Grid(3), draws=2)]))
def test_srg_is_lif_minus_mif_is_mrg_plus_lrg_exactly(seed: int, occlusion: Occlusion) -> None:
    model, shown = small_cnn(), batch(2)
    requested = answered(model, shown, noise(shown, seed))
    mif, lif, mrg, lrg, srg, chance = (
        metric(occlusion)(requested).values for metric in (MIF, LIF, MRG, LRG, SRG, ROMS)
    )
    assert torch.equal(srg, lif - mif)
    assert torch.equal(srg, mrg + lrg)
    torch.testing.assert_close(mrg, chance - mif, atol=1e-9, rtol=0)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from(["linear", "paper"]))
def test_an_inverted_map_negates_srg(seed: int, steps: str) -> None:
    model, shown = small_cnn(), batch(2)
    maps = noise(shown, seed).sign() if seed % 2 else noise(shown, seed)
    metric = SRG(BLACK, steps=steps)  # type: ignore[arg-type]
    assert torch.equal(metric(answered(model, shown, maps)).values, -metric(answered(model, shown, -maps)).values)


def test_a_constant_map_scores_exactly_nothing_and_says_why() -> None:
    shown = batch(3)
    scored = SRG()(answered(small_cnn(), shown, torch.full((3, 32, 32), 0.1)))
    assert torch.equal(scored.values, torch.zeros(3, dtype=torch.float64))
    assert scored.notes == ("all segments tie: their order is drawn by lot",) * 3
    assert scored.details["tied"].tolist() == [1.0] * 3
    unlike = SRG()(answered(small_cnn(), shown, noise(shown)))
    assert unlike.notes == ("",) * 3
    assert unlike.details["tied"].tolist() == [0.0] * 3
    assert unlike.details["segments"].tolist() == list(SRG().game(answered(small_cnn(), shown, noise(shown))).counts)


def test_ties_are_not_broken_in_raster_order() -> None:
    shown = batch(8)
    order = lots(shown, (25,) * 8, "ties")
    assert all(sorted(row.tolist()) == list(range(25)) for row in order)
    assert len({tuple(row.tolist()) for row in order}) == 8
    assert torch.equal(lots(shown.select([5, 2]), (25, 25), "ties"), order[[5, 2]])


def test_random_orders_score_nothing_on_average() -> None:
    shown = batch(40)
    values = SRG(BLACK)(answered(small_cnn(), shown, noise(shown))).values
    error = float(values.std()) / 40**0.5
    assert abs(float(values.mean())) < 3 * error


def test_on_an_additive_model_the_true_order_is_optimal_and_both_gains_agree() -> None:
    shown = batch(2)
    model, maps = additive(shown)
    occlusion = Occlusion(Constant(), Grid(2))
    true = answered(model, shown, maps)
    kinds = {"occlusion": occlusion, "readout": "logit", "points": 5}
    mif, lif = (kind(**kinds)(true).values for kind in (MIF, LIF))
    game = game_of(model, shown, occlusion, "logit")
    every = [
        area(removal_curve(game, torch.tensor([order] * 2), removals(game.counts, "linear", 5)))
        for order in permutations(range(4))
    ]
    torch.testing.assert_close(mif, torch.stack(every).amin(0), atol=1e-5, rtol=0)
    torch.testing.assert_close(lif, torch.stack(every).amax(0), atol=1e-5, rtol=0)
    # Equal segments: the extreme orders lie symmetrically about the straight line, the mean of all orders.
    line = torch.stack(every).mean(0)
    torch.testing.assert_close(line - mif, lif - line, atol=1e-5, rtol=0)
    rescaled = answered(model, shown, maps * 3 + 0.0)
    assert torch.equal(SRG(**kinds)(rescaled).values, SRG(**kinds)(true).values)


def test_curves_run_over_true_area_from_none_to_all() -> None:
    model, shown = small_cnn(), batch(3)
    occlusion = Occlusion(segmenter=Felzenszwalb(scale=5.0, min_size=5))
    game = game_of(model, shown, occlusion)
    assert len(set(game.counts)) > 1
    scored = MIF(occlusion)(answered(model, shown, noise(shown)))
    x, y = scored.curve
    assert torch.equal(x[:, 0], torch.zeros(3, dtype=torch.float64))
    assert torch.equal(x[:, -1], torch.ones(3, dtype=torch.float64))
    assert bool((x.diff(dim=1) >= 0).all())
    torch.testing.assert_close(
        y[:, 0], model(shown.images).softmax(1).gather(1, shown.targets[:, None])[:, 0].double().detach()
    )
    # One image at a time, by hand.
    for i in range(3):
        values = pooled(game, noise(shown))[i, : game.counts[i]]
        first = int(values.argmax())
        k = int(removals(game.counts, "linear", 21)[i, 1])
        top = values.argsort(descending=True)[:k]
        assert first in top.tolist()
        area_gone = torch.isin(game.segments[i], top).double().mean()
        assert float(x[i, 1]) == pytest.approx(float(area_gone))


def test_images_with_different_numbers_of_segments_score_as_they_do_alone() -> None:
    model, shown = small_cnn(), batch(3)
    occlusion = Occlusion(segmenter=Felzenszwalb(scale=5.0, min_size=5))
    maps = noise(shown)
    for kind in (SRG, MRG, ROMS, NROMS):
        together = kind(occlusion)(answered(model, shown, maps)).values
        for i in range(3):
            alone = kind(occlusion)(answered(model, shown.select([i]), maps[[i]])).values
            assert torch.equal(alone[0], together[i])


def test_pooling_is_the_mean_over_each_segment() -> None:
    shown = batch(2)
    game = Game(small_cnn(), shown, Occlusion(segmenter=Felzenszwalb()))
    maps = noise(shown)
    found = pooled(game, maps)
    for i in range(2):
        for label in range(game.counts[i]):
            expected = maps[i][game.segments[i] == label].double().mean()
            assert float(found[i, label]) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (25, [0, 1, 2, 3, 5, 6, 7, 9, 12, 15, 19, 25]),
        (100, [0, 1, 2, 3, 5, 7, 10, 13, 19, 26, 37, 51, 71, 100]),
        (500, [0, 1, 2, 3, 5, 9, 14, 22, 34, 54, 84, 132, 205, 320, 500]),
    ],
)
def test_the_papers_grid(count: int, expected: list[int]) -> None:
    assert removals((count,), "paper", 21)[0].tolist() == expected


@given(st.lists(st.integers(1, 6000), min_size=1, max_size=4), st.sampled_from(["linear", "paper"]))
def test_grids_begin_with_none_and_end_with_all(counts: list[int], steps: str) -> None:
    grid = removals(tuple(counts), steps, 21)  # type: ignore[arg-type]
    assert grid[:, 0].tolist() == [0] * len(counts)
    assert grid[:, -1].tolist() == counts
    assert bool((grid.diff(dim=1) >= 0).all())


def test_methods_share_the_ends_the_baseline_and_both_directions() -> None:
    model, shown = small_cnn(), batch(2)
    first, second = (answered(model, shown, noise(shown, seed)) for seed in (0, 1))
    for metric in (MIF(), LIF(), SRG(), MRG(), LRG()):
        metric(first)
    game = game_of(model, shown, Occlusion())
    steps = len(removals(game.counts, "linear", 21)[0])
    assert game.evaluated <= 2 * (2 + (2 + 5) * (steps - 2))
    before = game.evaluated
    for metric in (MIF(), LIF(), SRG(), MRG(), LRG()):
        metric(second)
    assert game.evaluated - before <= 2 * 2 * (steps - 2)
    SRG(readout="logit")(second)
    NROMS()(second)
    assert game.evaluated - before <= 2 * 2 * (steps - 2)


def test_one_direction_alone_pays_for_one_direction() -> None:
    model, shown = small_cnn(), batch(2)
    MIF()(answered(model, shown, noise(shown)))
    assert game_of(model, shown, Occlusion()).evaluated <= 2 * 21


def test_the_target_may_be_the_label() -> None:
    model, shown = small_cnn(), batch(2)
    labelled = Batch(shown.images, shown.targets, shown.ids, labels={"label": (shown.targets + 3) % 10})
    requested = answered(model, labelled, noise(shown))
    expected = MIF()(answered(model, labelled.aimed(labelled.labels["label"]), noise(shown)))
    assert torch.equal(MIF(target="label")(requested).values, expected.values)
    with pytest.raises(NotApplicable, match="label"):
        MIF(target="label")(answered(model, shown, noise(shown)))


@pytest.mark.parametrize("kind", [MIF, LIF, SRG, MRG, LRG])
def test_a_picture_without_a_label_has_no_score_and_says_why(kind: type[Flipping]) -> None:
    model, shown = small_cnn(), batch(3)
    labelled = Batch(shown.images, shown.targets, shown.ids, labels={"label": torch.tensor([4, -1, 2])})
    scored = kind(BLACK, target="label")(answered(model, labelled, noise(shown)))  # type: ignore[operator]
    assert scored.values.isnan().tolist() == [False, True, False]
    assert "this picture has no label" in scored.notes[1]
    assert scored.notes[0] == scored.notes[2] == ""
    known = labelled.select([0, 2])
    alone = kind(BLACK, target="label")(answered(model, known, noise(shown)[[0, 2]]))  # type: ignore[operator]
    assert torch.equal(alone.values, scored.values[[0, 2]])


@pytest.mark.parametrize("kind", [MIF, SRG, LRG])
def test_a_curve_that_is_not_finite_says_so(kind: type[Flipping]) -> None:
    class Lost(nn.Module):
        """Rules class 0 out when it sees nothing."""

        def forward(self, images: Tensor) -> Tensor:
            bright = images.mean((1, 2, 3))
            return torch.stack([bright.log(), bright], 1)

    shown = batch(1).aimed(torch.zeros(1, dtype=torch.int64))
    requested = answered(Model("lost", Lost()), shown, noise(shown))
    scored = kind(BLACK, readout="logit")(requested)  # type: ignore[operator]
    assert not bool(scored.values.isfinite().any())
    assert scored.notes == ("the model's answer on the way is not finite",)


def test_the_answer_falls_faster_when_the_important_goes_first() -> None:
    class Window(nn.Module):
        """Class 0 wins by the brightness of the centre alone."""

        def forward(self, images: Tensor) -> Tensor:
            bright = images[:, :, 12:20, 12:20].mean((1, 2, 3))
            return torch.stack([8 * bright, 4 - 8 * bright], 1)

    shown = Batch(torch.full((1, 3, 32, 32), 0.9), torch.zeros(1, dtype=torch.int64), ("bright",))
    centre = torch.zeros(1, 32, 32)
    centre[:, 12:20, 12:20] = 1.0
    good, bad = (answered(Model("window", Window()), shown, maps) for maps in (centre, -centre))
    occlusion = Occlusion(Constant(), Grid(8))
    assert float(SRG(occlusion)(good).values) > 0.5 > -0.5 > float(SRG(occlusion)(bad).values)
    assert float(MIF(occlusion)(good).values) < float(MIF(occlusion)(bad).values)
    assert not MIF.higher_is_better
    assert all(kind.higher_is_better for kind in (LIF, MRG, LRG, SRG))


def test_the_curve_of_srg_integrates_to_about_srg() -> None:
    shown = batch(2)
    scored = SRG(points=26)(answered(small_cnn(), shown, noise(shown)))
    assert scored.curve is not None
    drawn = np.trapezoid(scored.curve.y.numpy(), scored.curve.x.numpy(), axis=1)
    np.testing.assert_allclose(drawn, scored.values.numpy(), atol=0.01)


def test_metrics_can_be_replayed_from_their_recipe() -> None:
    metric = SRG(Occlusion(Uniform(), Grid(7), draws=3), steps="paper")
    assert recipe.build(recipe.plain(metric)) == metric
    assert recipe.label(metric) == "srg(occlusion=uniform/grid(side=7) x3, steps=paper)"
    assert isinstance(metric, Flipping)
