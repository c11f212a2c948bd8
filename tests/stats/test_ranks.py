"""Rankings: ranks as scipy gives them, intervals over images, pairs that change order."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.ranks import compare_rankings, complete, kendall_tau, rank, rank_methods

tables = arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(2, 5)), elements=st.integers(-3, 3).map(float))


@given(tables)
@settings(deadline=None)
def test_rank_is_scipys_with_one_as_best(values):
    np.testing.assert_array_equal(rank(values), stats.rankdata(-values, axis=1))
    np.testing.assert_array_equal(rank(values, higher_is_better=False), stats.rankdata(values, axis=1))


def test_missing_scores_stay_unranked():
    np.testing.assert_array_equal(rank([3.0, np.nan, 5.0]), [2, np.nan, 1])


@given(tables, st.booleans())
@settings(max_examples=40, deadline=None)
def test_ranking_is_sorted_and_inside_its_interval(values, higher):
    table = pd.DataFrame(values, columns=[f"m{i}" for i in range(values.shape[1])])
    found = rank_methods(table, higher_is_better=higher, resamples=60)
    assert list(found.ranks) == sorted(found.ranks)
    assert sum(found.ranks) == len(found.methods) * (len(found.methods) + 1) / 2
    assert sum(found.first) == pytest.approx(1)
    spans = list(zip(found.low, found.high, strict=True))
    assert all(1 <= low <= high <= len(found.methods) for low, high in spans) == (found.n >= 5)
    assert np.isnan(spans).all() == (found.n < 5)
    order = list(found.scores)
    assert order == sorted(order, reverse=higher)


def test_equal_methods_stay_tied_in_every_resample():
    column = np.random.default_rng(0).random(37)
    found = rank_methods(pd.DataFrame(dict.fromkeys("abcde", column)), resamples=200)
    assert set(found.low) == set(found.high) == set(found.ranks) == {3.0}


def test_a_clear_winner_has_a_narrow_rank_and_noise_a_wide_one():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": rng.normal(5, 1, 50), "b": rng.normal(0, 1, 50), "c": rng.normal(0, 1, 50)})
    found = rank_methods(table)
    assert found.methods[0] == "a"
    assert (found.low[0], found.high[0], found.first[0]) == (1, 1, 1)
    assert (found.low[1], found.high[1]) == (2, 3)
    assert list(found.frame()["method"]) == list(found.methods)


def test_only_common_images_count_and_empty_methods_are_named():
    table = pd.DataFrame({"a": [1.0, 9.0, 1.0], "b": [2.0, np.nan, 2.0], "c": [np.nan] * 3})
    found = rank_methods(table)
    assert found.methods == ("b", "a")  # the 9 has no counterpart
    assert (found.n, found.dropped_images, found.unscored_methods) == (2, 1, ("c",))


def test_one_method_with_few_scores_does_not_decide_for_all():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.normal(at, 0.1, 40) for at, name in enumerate(["bad", "mid", "good"])})
    table["flaky"] = np.nan
    table.loc[0, ["flaky", "bad"]] = 9.0
    found = rank_methods(table)
    assert found.methods == ("good", "mid", "bad")
    assert (found.n, found.dropped_images, found.sparse_methods) == (40, 0, ("flaky",))
    table.loc[:33, "flaky"] = 9.0  # most of them: it takes part, and the rest is left out
    assert rank_methods(table).n == 34
    assert complete(table.loc[[0, 39]], everyone=True).table.shape == (1, 4)
    scattered = pd.DataFrame(np.where(np.eye(4, 8, dtype=bool), np.nan, 1.0).T, columns=list("abcd"))
    assert rank_methods(scattered).sparse_methods == ()  # half of the methods would have to go


def test_rounding_is_no_difference():
    column = np.random.default_rng(0).random(37)
    noise = np.random.default_rng(1).normal(0, 1e-9, 37)
    found = rank_methods(pd.DataFrame({"a": column, "b": column + np.abs(noise), "c": column + 1e-3}))
    assert found.rank_of() == {"c": 1, "a": 2.5, "b": 2.5}
    assert set(found.low) == {1, 2.5}


def test_one_image_gives_ranks_without_intervals():
    found = rank_methods(pd.DataFrame({"a": [1.0], "b": [2.0]}))
    assert found.methods == ("b", "a")
    assert np.isnan(found.low).all()


def test_means_and_medians_can_disagree():
    table = pd.DataFrame({"steady": [1.0] * 5, "lucky": [0.0, 0.0, 0.0, 0.0, 100.0]})
    for by, first in (("mean", "lucky"), ("median", "steady")):
        assert rank_methods(table, by=by, resamples=50).methods[0] == first


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_tau_counts_changed_pairs(first, second):
    a = {f"m{i}": r for i, r in enumerate(first)}
    b = {f"m{i}": r for i, r in enumerate(second)}
    found = compare_rankings(a, b)
    assert found.tau == pytest.approx(1 - 2 * len(found.changed) / 15)
    assert all(a[p.first] < a[p.second] and b[p.first] > b[p.second] for p in found.changed)


def test_tau_of_a_constant_is_undefined():
    assert np.isnan(kendall_tau([1.0, 1.0], [1.0, 2.0]))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [np.inf, 1.0]}),
        pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
        pd.DataFrame(),
        pd.DataFrame({"a": [np.nan]}),
        pd.DataFrame({"a": [1.0, np.nan], "b": [np.nan, 1.0]}),
        np.zeros((3, 2)),
    ],
)
def test_refuses(table):
    with pytest.raises(BadInput):
        rank_methods(table)


def test_refuses_rankings_of_other_methods():
    with pytest.raises(BadInput, match="only one of them has c"):
        compare_rankings({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3})
    with pytest.raises(BadInput):
        kendall_tau([1.0, np.nan], [1.0, 2.0])
