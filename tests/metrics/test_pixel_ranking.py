"""Scores of the order of pixels: known values, reference libraries, and what must not move them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, roc_auc_score

from heatproof.errors import BadInput
from heatproof.metrics._support.iou import (
    auroc,
    average_precision,
    best_iou,
    iou_by_area,
    pointing_game,
    relevance_mass,
    relevance_rank,
    threshold_grid,
)
from heatproof.metrics._support.pixel_ranking import signed
from heatproof.metrics._support.sorted_pixels import sorted_pixels

SIDE = 6
HEAT = st.one_of(st.integers(-5, 5).map(float), st.floats(-10, 10, width=32))
maps = arrays(np.float32, (SIDE, SIDE), elements=HEAT)
regions = arrays(np.bool_, (SIDE, SIDE)).filter(lambda region: region.any() and not region.all())
ORDERED = (best_iou, average_precision, auroc, relevance_rank, pointing_game)


def pair(heat, region):
    return torch.from_numpy(heat)[None], torch.from_numpy(region)[None]


@given(maps, regions)
def test_pixels_and_flags_are_sorted_together(heat, region):
    pixels = sorted_pixels(heat.ravel(), region.ravel())
    assert np.array_equal(pixels.values, np.sort(heat.ravel() + 0))
    inside, outside = pixels.distinct()
    values = np.unique(heat)[::-1]
    assert inside.tolist() == [int((heat[region] >= v).sum()) for v in values]
    assert outside.tolist() == [int((heat[~region] >= v).sum()) for v in values]


@given(maps, regions)
def test_average_precision_and_auroc_are_what_scikit_learn_says(heat, region):
    both = pair(heat, region)
    flat, flags = heat.ravel(), region.ravel()
    assert float(average_precision(*both)) == pytest.approx(average_precision_score(flags, flat))
    assert float(auroc(*both)) == pytest.approx(roc_auc_score(flags, flat))


@given(maps, regions)
def test_best_iou_is_the_best_of_all_thresholds(heat, region):
    each = [(heat[region] >= v).sum() / (region | (heat >= v)).sum() for v in np.unique(heat)]
    assert float(best_iou(*pair(heat, region))) == pytest.approx(max(each))


@given(arrays(np.int64, (SIDE, SIDE), elements=st.integers(-8, 8)), regions)
def test_rescaling_that_keeps_the_order_changes_nothing(ranks, region):
    both = pair(ranks.astype(np.float32), region)
    other = pair(np.exp(ranks / 2.0).astype(np.float32), region)
    for score in ORDERED:
        assert float(score(*both)) == float(score(*other))
    grid = threshold_grid(19)
    assert torch.equal(iou_by_area(*both, grid), iou_by_area(*other, grid))


@given(st.permutations(range(SIDE**2)), regions)
def test_without_ties_the_hottest_pixels_are_counted(order, region):
    heat = np.array(order, dtype=np.float32).reshape(SIDE, SIDE)
    both, size = pair(heat, region), int(region.sum())
    hottest = np.argsort(-heat.ravel())
    inside = region.ravel()[hottest].cumsum()
    assert float(relevance_rank(*both)) == pytest.approx(inside[size - 1] / size)
    assert float(pointing_game(*both)) == float(region.ravel()[hottest[0]])
    areas = torch.tensor([1, 7, 36], dtype=torch.float64) / SIDE**2
    wanted = [inside[k - 1] / (size + k - inside[k - 1]) for k in (1, 7, 36)]
    assert iou_by_area(*both, areas)[0].tolist() == pytest.approx(wanted)
    assert float(relevance_mass(*both)) == pytest.approx(heat[region].sum() / heat.sum(), rel=1e-5)


@given(maps, regions)
def test_all_lie_between_0_and_1(heat, region):
    both = pair(heat, region)
    for score in ORDERED:
        assert 0 <= float(score(*both)) <= 1
    curve = iou_by_area(*both, threshold_grid(19))
    assert 0 <= float(curve.min()) <= float(curve.max()) <= 1


@given(regions, st.floats(-3, 3, width=32))
def test_a_constant_map_scores_what_chance_does(region, value):
    both = pair(np.full((SIDE, SIDE), value, dtype=np.float32), region)
    share = region.mean()
    assert float(auroc(*both)) == 0.5
    for score in (average_precision, relevance_rank, pointing_game, best_iou):
        assert float(score(*both)) == pytest.approx(share)
    areas = threshold_grid(5)
    wanted = areas * share / (areas + share - areas * share)
    assert torch.allclose(iou_by_area(*both, areas)[0], wanted)


@given(regions)
def test_the_region_itself_is_found_whole(region):
    both = pair(region.astype(np.float32), region)
    for score in (*ORDERED, relevance_mass):
        assert float(score(*both)) == 1


def test_questions_without_an_answer_are_nan():
    heat, region = torch.rand(1, 4, 4), torch.zeros(1, 4, 4, dtype=torch.bool)
    for score in (*ORDERED, relevance_mass):
        assert torch.isnan(score(heat, region)).all()
        assert torch.isnan(score(torch.full_like(heat, torch.nan), ~region)).all()
    assert torch.isnan(iou_by_area(heat, region, threshold_grid(3))).all()
    assert torch.isnan(auroc(heat, ~region)).all()
    assert torch.isnan(relevance_mass(torch.zeros_like(heat), ~region)).all()
    with pytest.raises(BadInput, match="negative"):
        relevance_mass(heat - 1, ~region)


@given(maps)
def test_sign_says_what_is_hot(heat):
    assume((heat < 0).any())
    tensor = torch.from_numpy(heat)[None]
    assert torch.equal(signed(tensor, "signed"), tensor)
    assert torch.equal(signed(tensor, "positive"), tensor.clamp(min=0))
    assert torch.equal(signed(tensor, "absolute"), tensor.abs())
