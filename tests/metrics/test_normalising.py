"""Normalising rules: the range, the order, and the maps that have none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatproof import registry
from heatproof.errors import BadInput
from heatproof.methods.cam import GradCam
from heatproof.methods.saliency import Saliency
from heatproof.methods.xrai import XRAI
from heatproof.metrics._support.normalisation import RULES, normalise, rule_of

maps = arrays(np.float32, (2, 5, 5), elements=st.floats(-1e3, 1e3, width=32)).map(torch.from_numpy)


@given(maps, st.sampled_from(RULES))
def test_heat_fills_0_to_1_or_is_0_throughout(given_maps, rule):
    heat = normalise(given_maps, rule)
    assert heat.shape == given_maps.shape
    assert heat.dtype == torch.float32
    for one in heat:
        assert float(one.min()) >= 0
        assert float(one.max()) in (0.0, 1.0)


@given(maps, st.sampled_from(RULES), st.integers(-8, 8))
def test_the_unit_of_the_map_does_not_matter(given_maps, rule, power):
    small = torch.where(given_maps.abs() < 1e-3, 0.0, given_maps)  # stay clear of the smallest floats
    assert torch.allclose(normalise(small, rule), normalise(small * 2.0**power, rule), atol=1e-6)


@given(maps)
def test_signed_rules_keep_the_order_and_unsigned_ones_that_of_magnitudes(given_maps):
    for rule, seen in (("min_max", given_maps), ("rank", given_maps), ("abs_min_max", given_maps.abs())):
        for one, heat in zip(seen, normalise(given_maps, rule), strict=True):
            order = one.flatten().argsort()
            assert bool((heat.flatten()[order].diff() >= 0).all()), rule


@given(arrays(np.float32, (1, 12, 12), elements=st.floats(-50, 50, width=32)).map(torch.from_numpy))
def test_the_clip_is_the_99th_percentile_as_numpy_has_it(given_maps):
    sizes = given_maps.abs().double().numpy()
    low, high = sizes.min(), np.percentile(sizes, 99)
    if high - low < 1e-3:
        return  # the maximum takes its place, see below
    wanted = np.clip((sizes - low) / (high - low), 0, 1)
    assert np.allclose(normalise(given_maps, "abs_p99").numpy(), wanted, atol=1e-6)


def test_a_map_hot_on_less_than_a_hundredth_is_not_lost():
    maps = torch.zeros(1, 20, 20)
    maps[0, 3, 4] = 2.0
    for rule in RULES:
        assert torch.equal(normalise(maps, rule), maps / 2), rule


@pytest.mark.parametrize("value", [-3.0, 0.0, 2.5])
def test_a_constant_map_is_cold(value):
    for rule in ("abs_p99", "abs_min_max", "min_max", "rank"):
        assert not normalise(torch.full((1, 4, 4), value), rule).any()


def test_the_positive_rule_drops_evidence_against():
    maps = torch.tensor([[[-4.0, 0.0], [1.0, 2.0]], [[-4.0, -3.0], [-2.0, -1.0]]])
    assert normalise(maps, "positive").tolist() == [[[0, 0], [0.5, 1]], [[0, 0], [0, 0]]]


def test_tied_pixels_share_a_rank():
    assert normalise(torch.tensor([[[1.0, 5.0], [5.0, 9.0]]]), "rank").tolist() == [[[0, 0.5], [0.5, 1]]]


def test_the_largest_floats_do_not_overflow():
    maps = torch.tensor([[[-3e38, 0.0], [1e38, 3e38]]])
    assert bool(normalise(maps, "min_max").isfinite().all())


def test_what_is_not_finite_is_refused_and_so_is_an_unknown_rule():
    with pytest.raises(BadInput, match=r"finite.*map 1"):
        normalise(torch.tensor([[[0.0, 1.0]], [[0.0, torch.nan]]]), "min_max")
    with pytest.raises(BadInput, match="rule must be one of"):
        normalise(torch.zeros(1, 2, 2), "minmax")


def test_methods_have_their_usual_rule():
    assert rule_of(XRAI(), "by_method") == "min_max"
    assert rule_of(GradCam(), "by_method") == "positive"
    assert rule_of(Saliency(), "by_method") == "abs_p99"
    assert rule_of(lambda model, batch: batch.images.mean(1), "by_method") == "abs_p99"
    assert rule_of(XRAI(), "rank") == "rank"


@pytest.mark.parametrize("name", ["lime", "kernel_shap", "shapley", "pred_diff", "arch_attribute", "occlusion", "rise"])
def test_what_parts_of_the_picture_are_worth_counts_from_zero(name):
    assert rule_of(registry.find("method", name), "by_method") == "positive"
