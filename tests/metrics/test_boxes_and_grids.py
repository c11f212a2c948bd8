"""Top-k intersection, boxes, tolerance and grids: pictures whose score is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from closed_forms import Ignorant, alone, drawn, grey, weighted
from networks import SmallCNN, seeded

from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.controls import Random
from heatproof.methods.saliency import Saliency
from heatproof.metrics._support.pixel_ranking import relevance_rank
from heatproof.metrics.grid_pointing import GridPointing, cells
from heatproof.metrics.max_box_accuracy import (
    MaxBoxAccuracy,
    best_overlap,
    boxes_of,
    centred_box,
    max_box_accuracy,
)
from heatproof.metrics.pointing_game import PointingGame, near, pointing_game
from heatproof.metrics.top_k_intersection import TopKIntersection, top_k_intersection
from heatproof.types import Attribution, Batch, Model

MODEL = weighted(drawn(2, 1, 20, 20))


def _placed(count=3, side=20):
    regions = torch.zeros(count, side, side, dtype=torch.bool)
    regions[:, 4:12, 6:14] = True
    shown = grey(count, side)
    return Batch(shown.images, shown.targets, shown.ids, regions)


def _of(maps, regions=None):
    shown = _placed(len(maps))
    if regions is not None:
        shown = Batch(shown.images, shown.targets, shown.ids, regions)
    return Attribution(MODEL, shown, Ignorant(), maps)


def test_the_hottest_pixels_by_hand():
    maps = torch.zeros(1, 20, 20)
    maps[0, 4:12, 6:14] = 1.0
    maps[0, 0, :16] = 2.0
    regions = _placed(1).regions
    assert float(top_k_intersection(maps, regions, 0.04)) == 0
    assert float(top_k_intersection(maps, regions, 0.08)) == pytest.approx(0.5)
    assert float(top_k_intersection(maps, regions, 64 / 400)) == pytest.approx(float(relevance_rank(maps, regions)))


def test_ties_give_what_a_random_order_gives_on_average():
    found = TopKIntersection()(_of(torch.ones(2, 20, 20)))
    assert found.values.tolist() == pytest.approx([64 / 400] * 2)
    assert found.details["chance"].tolist() == pytest.approx([64 / 400] * 2)
    assert all("constant" in note for note in found.notes)


def test_a_small_region_caps_the_share_and_scaling_lifts_the_cap():
    perfect = _placed(1).regions.float()
    plain, scaled = (TopKIntersection(k=0.32, scaled=scaled)(_of(perfect)) for scaled in (False, True))
    assert plain.values.tolist() == pytest.approx([0.5])
    assert plain.details["ceiling"].tolist() == pytest.approx([0.5])
    assert scaled.values.tolist() == pytest.approx([1.0])


def test_an_empty_region_has_no_score_and_is_no_hit():
    empty = torch.zeros(1, 20, 20, dtype=torch.bool)
    for metric in (TopKIntersection(), PointingGame(15), MaxBoxAccuracy()):
        found = metric(_of(torch.rand(1, 20, 20), empty))
        assert bool(found.values.isnan().all())
        assert "empty" in found.notes[0]


def test_tolerance_is_a_distance_from_the_region():
    region = torch.zeros(1, 9, 9, dtype=torch.bool)
    region[0, 4, 4] = True
    down, along = torch.meshgrid(torch.arange(9), torch.arange(9), indexing="ij")
    disc = (down - 4) ** 2 + (along - 4) ** 2 <= 9
    assert torch.equal(near(region, 3)[0], disc)
    maps = torch.zeros(1, 9, 9)
    maps[0, 4, 7] = 1
    assert [float(pointing_game(maps, region, t)) for t in (0, 2.9, 3)] == [0, 0, 1]
    corner = torch.zeros(1, 9, 9)
    corner[0, 6, 7] = 1  # within 3 along either axis and √13 away
    assert float(pointing_game(corner, region, 3)) == 0


def test_the_chance_of_a_hit_grows_with_the_tolerance():
    loose = PointingGame(tolerance=2)(_of(torch.rand(1, 20, 20)))
    strict = PointingGame()(_of(torch.rand(1, 20, 20)))
    assert strict.details["chance"].tolist() == [64 / 400]
    assert loose.details["chance"] > strict.details["chance"]


def test_boxes_are_opencvs():
    import cv2

    dice = np.random.default_rng(0)
    for _ in range(20):
        mask = dice.random((30, 40)) < 0.2
        contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        wanted = {(y, x, y + h, x + w) for x, y, w, h in map(cv2.boundingRect, contours)}
        inner = {tuple(box) for box in boxes_of(mask).astype(int)}
        assert wanted <= inner  # a part within a hole has no outer contour of its own


def test_the_overlap_of_boxes_by_hand():
    one = np.array([[0.0, 0, 4, 4]])
    assert best_overlap(one, np.array([[2.0, 0, 6, 4], [9, 9, 10, 10]])) == pytest.approx(1 / 3)
    assert best_overlap(one, np.zeros((0, 4))) == 0


def test_a_map_of_the_object_is_boxed_right_at_every_overlap():
    found = MaxBoxAccuracy(overlaps=(0.3, 0.9, 1.0))(_of(_placed(2).regions.float()))
    assert found.values.tolist() == [1, 1]
    assert found.details["iou"].tolist() == [1, 1]
    assert bool((found.curve.y[:, 1:] == 1).all())
    assert bool((found.curve.y[:, 0] == 0).all())  # at threshold 0 everything is heat


def test_the_blind_box_is_scored_beside():
    found = MaxBoxAccuracy()(_of(torch.rand(2, 20, 20)))
    middle = best_overlap(centred_box(20, 20), np.array([[4.0, 6, 12, 14]]))
    assert found.details["centred_box"].tolist() == pytest.approx([np.mean([middle >= d for d in (0.3, 0.5, 0.7)])] * 2)


def test_the_threshold_is_chosen_on_other_pictures():
    curves = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert max_box_accuracy(curves) == 0.0  # what suits one half is wrong on the other
    assert float(curves.mean(0).max()) == 0.5  # the published number
    with pytest.raises(BadInput):
        max_box_accuracy(curves[:1])


def _mosaic(count=3):
    """2 × 2 mosaics of pictures that are 12 pixels wide; the class is in the third cell."""
    shown = grey(count, 24)
    regions = torch.zeros(count, 24, 24, dtype=torch.bool)
    regions[:, 12:, :12] = True
    return Batch(shown.images, shown.targets, shown.ids, regions)


@pytest.mark.parametrize("setting", ["disconnected", "partly_disconnected"])
def test_a_gradient_stays_in_the_cell_that_answers_alone(setting):
    model, shown = weighted(drawn(2, 1, 12, 12)), _mosaic()
    if setting == "partly_disconnected":
        network = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1), torch.nn.Flatten(), torch.nn.Linear(144, 2))
        model = Model("convolutional", network)
    method = Saliency()
    metric = GridPointing(setting=setting, layer="0" if setting == "partly_disconnected" else "")
    found = metric(Attribution(model, shown, method, torch.rand(3, 24, 24)))
    assert found.values.tolist() == pytest.approx([1, 1, 1])


def test_wider_convolutions_leak_where_cells_share_them():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 5, padding=2), torch.nn.Flatten(), torch.nn.Linear(576, 2))
    model, shown = Model("wide", network), _mosaic()
    found = GridPointing(setting="partly_disconnected", layer="0")(
        Attribution(model, shown, Saliency(), torch.rand(3, 24, 24))
    )
    assert bool((found.values < 1).all())
    assert bool((found.values > 0.8).all())


def test_noise_puts_the_cells_share_into_the_cell():
    shown = _mosaic(40)
    maps = Random()(MODEL, shown)
    found = GridPointing()(Attribution(MODEL, shown, Random(), maps))
    assert float(found.values.mean()) == pytest.approx(1 / 4, abs=0.02)
    assert found.details["chance"].tolist() == [1 / 4] * 40


def test_the_wrapped_model_answers_for_each_cell():
    shown = _mosaic()
    model = Model("cnn", seeded(SmallCNN))
    images = shown.images.expand(-1, 3, -1, -1)
    shown = Batch(images, shown.targets + 4, shown.ids, shown.regions)
    metric = GridPointing(setting="disconnected")
    attribution = Attribution(model, shown, Saliency(), torch.rand(3, 24, 24))
    answers = metric.model(attribution)(shown.images)
    alone_in_cell = model(shown.images[:, :, 12:, :12])
    torch.testing.assert_close(answers[:, 20:30], alone_in_cell)
    assert torch.equal(metric.aimed(attribution, torch.tensor([2, 2, 2])).targets, shown.targets + 20)


def test_only_mosaics_of_whole_cells_are_judged():
    with pytest.raises(NotApplicable, match="mosaics"):
        GridPointing()(_of(torch.rand(3, 20, 20)))
    with pytest.raises(NotApplicable, match="divides"):
        cells(torch.zeros(1, 1, 5, 4), 2)


def test_a_map_without_positive_heat_has_no_score():
    found = GridPointing()(Attribution(MODEL, _mosaic(), Ignorant(), -torch.rand(3, 24, 24)))
    assert bool(found.values.isnan().all())
    assert "no positive heat" in found.notes[0]


@pytest.mark.parametrize("metric", [TopKIntersection(), MaxBoxAccuracy(), PointingGame(2)])
def test_scores_do_not_depend_on_batch_mates(metric):
    attribution = _of(drawn(3, 20, 20))
    torch.testing.assert_close(alone(metric, attribution), metric(attribution).values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TopKIntersection(k=0.0),
        lambda: MaxBoxAccuracy(threshold=0.0),
        lambda: MaxBoxAccuracy(overlaps=()),
        lambda: PointingGame(tolerance=-1.0),
        lambda: GridPointing(grid=1),
        lambda: GridPointing(setting="open"),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(BadInput):
        make()
