"""Threshold bias: the published table as anchor, identities as properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.significance import holm, signed_rank
from heatproof.stats.threshold_bias import (
    bias_of_means,
    fold,
    relative_difference,
    threshold_bias,
    threshold_tests,
)

# Method: threshold-free area, IoU at .3, .5, .7, and the published relative differences at those thresholds.
PUBLISHED = {
    "XRAI": (0.1844, (0.2784, 0.2331, 0.1483), (-33.8, -20.9, 24.3)),
    "LIME": (0.1409, (0.1565, 0.1565, 0.1565), (-10.0, -10.0, -10.0)),
    "SmoothGrad IG": (0.1172, (0.1980, 0.1095, 0.0536), (-40.8, 7.0, 118.7)),
    "Grad-CAM": (0.1146, (0.1856, 0.1266, 0.0671), (-38.3, -9.5, 70.7)),
    "Blur IG": (0.0979, (0.1425, 0.0785, 0.0467), (-31.3, 24.7, 109.7)),
    "Guided IG": (0.0968, (0.1508, 0.0788, 0.0412), (-35.8, 22.8, 134.8)),
    "Vanilla IG": (0.0606, (0.0904, 0.0422, 0.0200), (-32.9, 43.5, 202.7)),
}
THRESHOLDS = (0.3, 0.5, 0.7)


@pytest.fixture
def published():
    free = [row[0] for row in PUBLISHED.values()]
    iou = [row[1] for row in PUBLISHED.values()]
    return bias_of_means(iou, free, list(PUBLISHED), THRESHOLDS)


def test_published_differences_within_the_rounding_of_the_table():
    for free, iou, differences in PUBLISHED.values():
        # Inputs are rounded to 4 digits: half a unit each way moves the quotient by this much.
        slack = 100 * 5e-5 * (1 / np.array(iou) + free / np.array(iou) ** 2) + 0.05
        assert (np.abs(relative_difference(free, iou) - differences) <= slack).all()


def test_published_swing_fold_and_tau(published):
    rows = published.methods.set_index("method")
    assert rows.loc["Vanilla IG", "swing"] == pytest.approx(235.6, abs=1.1)
    assert rows.loc["XRAI", "swing"] == pytest.approx(58.1, abs=0.2)
    assert rows.loc["LIME", "swing"] == 0
    assert rows["swing"].idxmax() == "Vanilla IG"
    assert rows.loc["Vanilla IG", "fold"] == pytest.approx(4.5, abs=0.05)
    assert rows.loc["XRAI", "fold"] == pytest.approx(1.9, abs=0.05)
    assert rows.loc["LIME", "fold"] == 1
    assert [round(t, 3) for t in published.thresholds["tau"]] == [0.714, 0.810, 0.810]


def test_published_winner_changes_only_at_the_highest_threshold(published):
    assert published.winner == "XRAI"
    assert list(published.thresholds["winner"]) == ["XRAI", "XRAI", "LIME"]
    swapped = {(p.first, p.second): p.thresholds for p in published.pairs}
    assert swapped[("XRAI", "LIME")] == (0.7,)
    assert swapped[("LIME", "Grad-CAM")] == (0.3,)
    assert sum(0.3 in thresholds for thresholds in swapped.values()) == 3  # (1 - .714) / 2 of 21 pairs


def test_span_removes_the_offset_between_an_area_and_a_height():
    rows = {m: r for m, r in PUBLISHED.items() if m in ("LIME", "XRAI")}
    free, iou = [r[0] for r in rows.values()], [r[1] for r in rows.values()]
    found = bias_of_means(iou, free, list(rows), THRESHOLDS, span=0.9).methods.set_index("method")
    assert found.loc["LIME", "difference_low"] == pytest.approx(0, abs=0.05)


@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_per_image_scores_give_what_their_means_give(n, m, seed):
    rng = np.random.default_rng(seed)
    thresholds = [0.1, 0.3, 0.5, 0.7]
    names = [f"m{i}" for i in range(m)]
    iou, free = rng.uniform(0.1, 1, (n, m, 4)), rng.uniform(0.1, 1, (n, m))
    found = threshold_bias(iou, free, names, thresholds)
    means = bias_of_means(iou.mean(0), free.mean(0), names, thresholds)
    np.testing.assert_array_equal(found.methods["swing"], means.methods["swing"])
    assert (found.n, found.pairs) == (n, means.pairs)
    for i, tau in enumerate(found.thresholds["tau"]):
        assert tau == pytest.approx(stats.kendalltau(free.mean(0), iou.mean(0)[:, i]).statistic)
        flipped = sum(thresholds[i] in p.thresholds for p in found.pairs)
        assert tau == pytest.approx(1 - 4 * flipped / (m * (m - 1)))


@given(st.integers(2, 5), st.integers(0, 10**6))
def test_a_threshold_that_does_not_matter_has_no_bias(m, seed):
    free = np.random.default_rng(seed).uniform(0.1, 1, m)
    found = bias_of_means(np.tile(free[:, None], 3), free, [str(i) for i in range(m)], THRESHOLDS)
    assert (found.methods["swing"] == 0).all()
    assert (found.methods["fold"] == 1).all()
    assert found.pairs == ()
    assert (found.thresholds["tau"] > 0.999).all()


def test_images_with_holes_are_left_out_for_all_methods():
    iou, free = np.full((3, 2, 3), 0.5), np.array([[0.2, 0.4], [0.9, np.nan], [0.2, 0.4]])
    found = threshold_bias(iou, free, ["a", "b"], THRESHOLDS)
    assert (found.n, found.dropped_images) == (2, 1)
    assert list(found.methods["free"]) == pytest.approx([0.2, 0.4])
    assert np.isnan(found.thresholds["tau"]).all()  # all methods tie at every threshold


def test_a_curve_with_a_hole_is_left_out_too():
    iou, free = np.full((3, 2, 3), 0.5), np.full((3, 2), 0.4)
    iou[1, 0, 2] = np.nan
    found = threshold_bias(iou, free, ["a", "b"], THRESHOLDS)
    assert (found.n, found.dropped_images) == (2, 1)
    assert found.methods["iou_high"].tolist() == [0.5, 0.5]


def test_a_tie_has_no_winner_but_the_one_that_is_first_anyway():
    iou = [[0.0, 0.3, 0.2], [0.0, 0.5, 0.2], [0.0, 0.5, 0.1]]
    found = bias_of_means(iou, [0.3, 0.2, 0.1], ["a", "b", "c"], THRESHOLDS)
    assert found.winner == "a"
    assert list(found.thresholds["winner"]) == ["a", "", "a"]


def test_the_published_table_has_three_thresholds(published):
    assert published.middle == 0.5
    rows = published.methods.set_index("method")
    assert rows.loc["Vanilla IG", "iou_middle"] == 0.0422
    assert rows.loc["Vanilla IG", "difference_middle"] == pytest.approx(43.5, abs=0.2)


def test_each_method_s_height_is_tested_against_its_own_iou():
    rng = np.random.default_rng(0)
    iou, free = rng.random((30, 2, 3)), rng.random((30, 2))
    free[4, 1] = np.nan
    found = threshold_tests(iou, free, ["a", "b"], THRESHOLDS).frame
    assert list(zip(found["method"], found["threshold"], strict=True)) == [(m, t) for m in "ab" for t in THRESHOLDS]
    single = [signed_rank(free[:, m], iou[:, m, t]) for m in range(2) for t in range(3)]
    assert found["p"].tolist() == pytest.approx([test.p for test in single])
    assert found["p_holm"].tolist() == pytest.approx(holm([test.p for test in single]).tolist())
    assert found["n"].tolist() == [30] * 3 + [29] * 3
    assert found["median_difference"].tolist() == pytest.approx([test.median_difference for test in single])
    assert found["significant"].tolist() == (found["p_holm"] < 0.05).tolist()


def test_an_area_is_made_a_height_before_it_is_tested():
    """A map of 0 and 1 has one IoU at all thresholds: its area of width 0.9 differs from it by its width alone."""
    flat = np.random.default_rng(1).uniform(0.1, 0.9, (40, 1))
    iou = np.repeat(flat[:, :, None], 3, axis=2)
    published = threshold_tests(iou, 0.9 * flat, ["LIME"], THRESHOLDS).frame
    assert (published["p_holm"] < 1e-6).all()
    mended = threshold_tests(iou, 0.9 * flat, ["LIME"], THRESHOLDS, span=0.9).frame
    assert mended["p"].tolist() == [1, 1, 1]
    assert mended["n_zero"].tolist() == [40] * 3


def test_zero_iou_is_defined():
    assert np.isnan(relative_difference(0.5, 0.0))
    assert fold(0.5, 0.0) == np.inf
    assert np.isnan(fold(0.0, 0.0))


def test_float32_thresholds_are_recognised():
    thresholds = list(np.array(THRESHOLDS, dtype=np.float32))
    assert bias_of_means(np.ones((2, 3)), [1.0, 2.0], ["a", "b"], thresholds).low == 0.3


@pytest.mark.parametrize(
    "call",
    [
        lambda: bias_of_means(np.ones((2, 3)), np.ones(2), ["a", "b"], (0.1, 0.2, 0.4)),
        lambda: bias_of_means(np.ones((2, 2)), np.ones(2), ["a", "b"], THRESHOLDS),
        lambda: bias_of_means(np.ones((2, 3)), np.ones(2), ["a", "b"], THRESHOLDS, span=0),
        lambda: threshold_bias(np.ones((2, 3)), np.ones(2), ["a", "b"], THRESHOLDS),
        lambda: threshold_tests(np.ones((2, 2, 3)), np.ones((2, 2)), ["a"], THRESHOLDS),
        lambda: threshold_bias(np.full((1, 1, 3), np.nan), np.ones((1, 1)), ["a"], THRESHOLDS),
    ],
)
def test_refuses(call):
    with pytest.raises(BadInput):
        call()
