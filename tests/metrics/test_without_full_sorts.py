"""Orders, sets and counts found without sorting everything: equal to what the plain sorts say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heatproof.metrics._support import sorted_pixels
from heatproof.metrics._support.iou import exact_auc_iou, iou_curve
from heatproof.metrics.sensitivity_n import smallest
from heatproof.occlusion.flip_order import removal_ranks

SEEDS = st.integers(0, 999)


def tied(shape: tuple[int, ...], levels: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, levels, shape) / levels


@given(st.integers(1, 60), st.sampled_from([2, 5, 10**9]), st.booleans(), SEEDS)
def test_removal_ranks_are_those_of_a_full_sort_by_value_then_lot(count, levels, padded, seed):
    values = torch.from_numpy(tied((3, count), levels, seed) - 0.5)
    if padded:
        values[:, count // 2 :] = torch.nan
    luck = torch.stack([torch.randperm(count, generator=torch.Generator().manual_seed(seed + i)) for i in range(3)])
    keys = np.where(values.isnan().numpy(), np.inf, -values.numpy())
    order = np.lexsort((luck.numpy(), keys), axis=1)
    ranks = removal_ranks(values, luck).numpy()
    np.testing.assert_array_equal(np.take_along_axis(ranks, order, 1), np.broadcast_to(np.arange(count), (3, count)))


@given(st.integers(1, 80), st.sampled_from([2, 7, 10**9]), st.data(), SEEDS)
def test_the_smallest_are_the_first_of_a_stable_sort(count, levels, data, seed):
    wanted = data.draw(st.integers(1, count))
    values = torch.from_numpy(tied((4, count), levels, seed)).float()
    chosen = smallest(values, wanted)
    expected = torch.zeros_like(chosen).scatter_(1, values.sort(dim=1, stable=True).indices[:, :wanted], True)
    assert torch.equal(chosen, expected)


@settings(deadline=None)
@given(st.integers(1, 300), st.sampled_from([4, 20, 10**9]), st.integers(1, 30), SEEDS)
def test_counting_and_sorting_find_the_same_tails(count, levels, thresholds, seed):
    values = tied((count,), levels, seed).astype(np.float32)
    region = np.random.default_rng(seed + 1).random(count) < 0.3
    grid = tied((thresholds,), 20, seed + 2).astype(np.float32)  # in any order, some twice
    counted = sorted_pixels._counted(values, region, grid)
    for found, part in zip(counted, (values[region], values[~region]), strict=True):
        np.testing.assert_array_equal(found, [(part >= level).sum() for level in grid])


@pytest.mark.parametrize("size", [10, 9_000, 32_768, 50_176])
def test_keys_are_sorted_whichever_way(size, monkeypatch):
    keys = np.random.default_rng(0).integers(0, 2**31, size, np.uint32)
    for quicker in (True, False):
        monkeypatch.setattr(sorted_pixels, "_radix_is_quicker", lambda quicker=quicker: quicker)
        np.testing.assert_array_equal(sorted_pixels.ascending(keys), np.sort(keys))
    large = keys + np.uint32(2**31)
    np.testing.assert_array_equal(sorted_pixels.ascending(large), np.sort(large))


@settings(deadline=None)
@given(st.integers(1, 12), st.sampled_from([3, 20, 10**9]), st.floats(0, 1), st.floats(0, 1), SEEDS)
def test_the_exact_integral_is_the_sum_over_all_intervals_between_values(side, levels, one, other, seed):
    low, high = sorted((one, other))
    if high - low < 1e-6:
        return
    maps = torch.from_numpy(tied((1, side, side), levels, seed)).float()
    regions = torch.from_numpy(np.random.default_rng(seed).random((1, side, side)) < 0.3)
    inner = maps.double().unique()
    edges = torch.cat([torch.tensor([low, high], dtype=torch.float64), inner[(inner > low) & (inner < high)]]).unique()
    middles = (edges[1:] + edges[:-1]) / 2
    # A float32 threshold in the middle stands for its interval where that is wide enough to hold one.
    wide = edges.diff() > 1e-6
    heights = iou_curve(maps, regions, middles.tolist())[0]
    expected = float((edges.diff() * heights)[wide].sum())
    found = float(exact_auc_iou(maps, regions, low, high, normalised=False))
    assert found == pytest.approx(expected, abs=1e-5)
