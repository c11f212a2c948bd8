"""IoU over thresholds: equal to the obvious loop in every bit, and the integral it tends to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatproof.errors import BadInput, BadShape
from heatproof.metrics._support.iou import auc_iou, exact_auc_iou, iou_curve, threshold_grid

SIDE = 6
TICKS = st.integers(0, 20).map(lambda k: np.float32(k / 20))  # values that are thresholds
HEAT = st.one_of(TICKS, st.floats(0, 1, width=32))


def pair(heat, region):
    return torch.from_numpy(heat)[None], torch.from_numpy(region)[None]


def loop(maps, regions, thresholds):
    """One pass per threshold, as one would write it first."""
    curves = np.empty((len(maps), len(thresholds)))
    for b, (heat, region) in enumerate(zip(maps.numpy(), regions.numpy(), strict=True)):
        for k, threshold in enumerate(thresholds):
            found = heat >= threshold
            union = int((found | region).sum())
            curves[b, k] = int((found & region).sum()) / union if union else 1.0
    return torch.from_numpy(curves)


maps_and_regions = st.tuples(arrays(np.float32, (SIDE, SIDE), elements=HEAT), arrays(np.bool_, (SIDE, SIDE))).map(
    lambda both: pair(*both)
)


@given(maps_and_regions, st.integers(2, 60))
def test_curves_equal_the_loop_bit_for_bit(both, count):
    levels = threshold_grid(count).numpy().astype(np.float32)
    assert torch.equal(iou_curve(*both, count), loop(*both, levels))


@given(maps_and_regions, st.lists(TICKS, min_size=1, max_size=8))
def test_any_thresholds_in_any_order(both, levels):
    assert torch.equal(iou_curve(*both, [float(x) for x in levels]), loop(*both, levels))


def test_the_grid_is_twentieths_and_every_way_to_write_it_gives_the_same():
    k = np.arange(1, 20)
    spelt = [k / 20, k * 0.05, np.linspace(0.05, 0.95, 19), np.arange(0.05, 0.96, 0.05)]
    assert threshold_grid(19).tolist() == (k / 20).tolist()
    heat = torch.from_numpy((np.arange(SIDE * SIDE) % 21 / 20).astype(np.float32)).view(1, SIDE, SIDE)
    region = torch.arange(SIDE * SIDE).view(1, SIDE, SIDE) % 3 == 0
    wanted = loop(heat, region, (k / 20).astype(np.float32))
    for levels in spelt:
        assert torch.equal(iou_curve(heat, region, torch.from_numpy(levels)), wanted)
    assert torch.equal(iou_curve(heat.double(), region), wanted)
    # the same values made in float64 by another road are the same values, too
    other = torch.from_numpy((np.arange(SIDE * SIDE) % 21) * 0.05).view(1, SIDE, SIDE)
    assert torch.equal(iou_curve(other, region), wanted)


@given(maps_and_regions)
def test_the_exact_integral_is_the_limit_of_fine_trapezoids(both):
    count = 20001
    spacing = 0.9 / (count - 1)
    steps = SIDE * SIDE  # the curve jumps at most once per pixel, each time by at most 1
    gap = (exact_auc_iou(*both, normalised=False) - auc_iou(*both, count, normalised=False)).abs()
    assert float(gap) <= spacing * steps


@given(maps_and_regions, st.floats(0, 0.4), st.floats(0.5, 1))
def test_the_exact_integral_is_the_sum_of_its_steps(both, low, high):
    heat, region = both
    edges = np.unique(np.clip(np.concatenate(([low, high], heat.double().numpy().ravel())), low, high))
    middles = (edges[1:] + edges[:-1]) / 2
    heights = loop(heat.double(), region, middles)[0].numpy()
    wanted = float((np.diff(edges) * heights).sum())
    assert float(exact_auc_iou(heat, region, low, high, normalised=False)) == pytest.approx(wanted, abs=1e-12)


@given(maps_and_regions)
def test_scores_lie_between_0_and_1_and_the_published_area_below_09(both):
    for score in (auc_iou(*both), exact_auc_iou(*both)):
        assert -1e-12 <= float(score) <= 1 + 1e-12
    assert float(auc_iou(*both, normalised=False)) == pytest.approx(0.9 * float(auc_iou(*both)), abs=1e-12)
    assert float(exact_auc_iou(*both, normalised=False)) == pytest.approx(0.9 * float(exact_auc_iou(*both)))


@given(maps_and_regions, st.randoms(use_true_random=False))
def test_where_the_pixels_stand_does_not_matter(both, dice):
    order = list(range(SIDE * SIDE))
    dice.shuffle(order)
    moved = [part.flatten(1)[:, order].view(1, SIDE, SIDE) for part in both]
    assert torch.equal(iou_curve(*moved), iou_curve(*both))
    assert float(exact_auc_iou(*moved)) == float(exact_auc_iou(*both))


def test_a_batch_scores_what_each_map_scores_alone():
    dice = torch.Generator().manual_seed(0)
    maps, regions = torch.rand(5, 8, 8, generator=dice), torch.rand(5, 8, 8, generator=dice) < 0.3
    for score in (iou_curve, auc_iou, exact_auc_iou):
        alone = torch.cat([score(maps[[i]], regions[[i]]) for i in range(5)])
        assert torch.equal(score(maps, regions), alone)
    assert iou_curve(maps[:0], regions[:0]).shape == (0, 19)


def test_the_region_itself_scores_1_and_its_opposite_0():
    region = torch.zeros(1, 8, 8, dtype=torch.bool)
    region[0, 2:5, 3:6] = True
    assert float(auc_iou(region.float(), region)) == pytest.approx(1)
    assert float(auc_iou(region.float(), region, normalised=False)) == pytest.approx(0.9)
    assert float(exact_auc_iou(region.float(), region)) == pytest.approx(1)
    assert float(auc_iou((~region).float(), region)) == 0


def test_a_map_of_zeros_and_ones_does_not_depend_on_the_threshold():
    """So its published area is 0.9 times its IoU: the offset that sets areas apart from heights."""
    region, found = (torch.zeros(1, 8, 8, dtype=torch.bool) for _ in range(2))
    region[0, :4], found[0, 2:6] = True, True
    assert iou_curve(found.float(), region).unique().tolist() == [1 / 3]
    assert float(auc_iou(found.float(), region, normalised=False)) == pytest.approx(0.9 / 3)


def test_what_degenerate_pictures_score_is_defined():
    nothing, all_of_it = torch.zeros(1, 4, 4, dtype=torch.bool), torch.ones(1, 4, 4, dtype=torch.bool)
    cold, warm = torch.zeros(1, 4, 4), torch.full((1, 4, 4), 0.5)
    for score in (auc_iou, exact_auc_iou):
        assert float(score(cold, nothing)) == pytest.approx(1)  # nothing to find, nothing found
        assert float(score(cold, all_of_it)) == 0
        assert float(score(cold, ~nothing)) == 0
    assert iou_curve(warm, nothing, [0.4, 0.5, 0.6]).tolist() == [[0, 0, 1]]
    assert iou_curve(warm, all_of_it, [0.4, 0.5, 0.6]).tolist() == [[1, 1, 0]]
    assert float(exact_auc_iou(warm, all_of_it)) == pytest.approx(0.5)
    assert float(exact_auc_iou(warm, nothing)) == pytest.approx(0.5)
    assert float(exact_auc_iou(-cold, nothing)) == pytest.approx(1)  # -0.0 is 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.1, 1.1])
def test_maps_that_are_not_normalised_are_refused(bad):
    maps = torch.zeros(1, 4, 4)
    maps[0, 1, 1] = bad
    region = torch.ones(1, 4, 4, dtype=torch.bool)
    for score in (iou_curve, auc_iou, exact_auc_iou):
        with pytest.raises(BadInput, match="normalise"):
            score(maps, region)


def test_other_mistakes_are_named():
    maps, region = torch.zeros(1, 4, 4), torch.ones(1, 4, 4, dtype=torch.bool)
    with pytest.raises(BadShape, match="dtype bool"):
        iou_curve(maps, region.float())
    with pytest.raises(BadShape, match="maps' shape"):
        iou_curve(maps, region[:, :3])
    with pytest.raises(BadShape, match="floating point"):
        iou_curve(maps.int(), region)
    with pytest.raises(BadInput, match="at least 2"):
        auc_iou(maps, region, 1)
    with pytest.raises(BadInput, match="ascending"):
        auc_iou(maps, region, [0.5, 0.2])
    with pytest.raises(BadInput, match="low < high"):
        exact_auc_iou(maps, region, 0.9, 0.1)
