"""Paired tests against scipy and statsmodels; critical differences against published q values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import interval
from heatproof.stats.ranks import rank_methods
from heatproof.stats.significance import (
    compare_pairs,
    critical_difference,
    holm,
    nemenyi,
    signed_rank,
    signed_ranks,
    smallest_p,
)

pairs = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=25)


def normal_table(n=30, seed=0, **centres):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.normal(centre, 1, n) for name, centre in centres.items()})


@pytest.mark.parametrize("seed", range(4))
def test_holm_equals_statsmodels(seed):
    p = np.round(np.random.default_rng(seed).random(12) ** 3, 2)  # rounded: with ties and zeros
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], atol=1e-15)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_procedure_rejects(p, alpha):
    rejected, left = [False] * len(p), len(p)
    for i in sorted(range(len(p)), key=p.__getitem__):
        if p[i] * left > alpha:
            break
        rejected[i], left = True, left - 1
    assert list(holm(p) <= alpha) == rejected


def test_holm_of_nothing_is_nothing():
    assert len(holm([])) == 0


@given(pairs)
@settings(deadline=None)
def test_signed_rank_equals_scipy_and_is_antisymmetric(values):
    first, second = np.array(values, dtype=float).T
    found, back = signed_rank(first, second), signed_rank(second, first)
    difference = (first - second)[first != second]
    assert found.n_zero == (first == second).sum()
    if len(difference):
        theirs = stats.wilcoxon(difference)
        assert (found.statistic, found.p) == (theirs.statistic, theirs.pvalue)
    else:
        assert found.p == 1
    assert back.rank_biserial == pytest.approx(-found.rank_biserial)
    assert back.median_difference == -found.median_difference
    assert back.p == pytest.approx(found.p)
    assert -1 <= found.rank_biserial <= 1


@given(st.integers(1, 40))
@settings(deadline=None)
def test_unanimous_images_reach_the_smallest_p_and_full_effect(n):
    found = signed_rank(np.arange(1.0, n + 1), np.zeros(n))
    assert found.p == pytest.approx(smallest_p(n)) == pytest.approx(found.smallest_p)
    assert found.rank_biserial == 1


def test_smallest_p_of_500_images_is_the_known_one():
    assert smallest_p(500) == pytest.approx(1.26e-83, rel=0.01)
    assert signed_rank(np.arange(1.0, 501), np.zeros(500)).p == pytest.approx(smallest_p(500))


def test_rank_biserial_by_hand():
    # Differences 1, -2, 3: ranks 1, 2, 3, so (1 + 3 - 2) / 6.
    assert signed_rank([1.0, 0.0, 3.0], [0.0, 2.0, 0.0]).rank_biserial == pytest.approx(1 / 3)


def test_pairs_are_tidy_complete_and_adjusted():
    table = normal_table(a=1, b=0.9, c=-1)
    table.loc[3, "a"] = np.nan
    table.loc[5, "b"] = table.loc[5, "c"]
    found = compare_pairs(table)
    frame = found.frame.set_index(["method_a", "method_b"])
    assert list(frame.index) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert list(frame["n"]) == [29, 29, 30]
    assert list(frame["n_missing"]) == [1, 1, 0]
    assert list(frame["n_zero"]) == [0, 0, 1]
    np.testing.assert_allclose(frame["p_holm"], multipletests(frame["p"], method="holm")[1])
    assert frame.loc[("a", "c"), "winner"] == "a"
    assert list(frame["significant"]) == [False, True, True]
    assert ((frame["mean_low"] <= frame["mean_difference"]) & (frame["mean_difference"] <= frame["mean_high"])).all()
    assert found.matrix().loc["c", "a"] == frame.loc[("a", "c"), "p_holm"]


def test_direction_turns_the_winner_and_nothing_else():
    table = normal_table(a=1, b=-1)
    up, down = compare_pairs(table).frame, compare_pairs(table, higher_is_better=False).frame
    assert (up["winner"][0], down["winner"][0]) == ("a", "b")
    pd.testing.assert_frame_equal(up.drop(columns="winner"), down.drop(columns="winner"))


def test_no_false_alarms_beyond_alpha():
    alarms = sum(
        compare_pairs(normal_table(n=15, seed=i, a=0, b=0, c=0, d=0), resamples=10).frame["significant"].any()
        for i in range(80)
    )
    assert alarms / 80 < 0.12


def test_friedman_equals_scipy_and_groups_follow_the_gap():
    table = normal_table(n=40, a=2, b=1.9, c=0, d=-2)
    found = critical_difference(table)
    theirs = stats.friedmanchisquare(*table.to_numpy().T)
    assert (found.statistic, found.p) == (pytest.approx(theirs.statistic), pytest.approx(theirs.pvalue))
    assert found.rejected
    assert set(found.methods[:2]) == {"a", "b"}
    rank_of = dict(zip(found.methods, found.mean_ranks, strict=True))
    for group in found.groups:
        assert max(rank_of[m] for m in group) - min(rank_of[m] for m in group) < found.critical_difference
    assert any({"a", "b"} <= set(group) for group in found.groups)
    assert not any({"a", "d"} <= set(group) for group in found.groups)
    assert sum(found.mean_ranks) == pytest.approx(10)


def test_critical_values_are_the_tabulated_ones():
    for k, q in ((2, 1.960), (5, 2.728), (10, 3.164)):
        assert nemenyi(k, 30) == pytest.approx(q * np.sqrt(k * (k + 1) / 180), rel=1e-3)


def test_without_a_difference_all_methods_form_one_group():
    column = np.random.default_rng(0).random(20)
    found = critical_difference(pd.DataFrame({"a": column, "b": column, "c": column}))
    assert (found.p, found.statistic, found.groups) == (1.0, 0.0, (("a", "b", "c"),))


def test_pictures_of_one_patient_are_one_row_of_nemenyis_test():
    alarms = {"pictures": 0, "patients": 0}
    for seed in range(60):
        dice = np.random.default_rng(seed)
        of = np.repeat(np.arange(12), 8)
        scores = dice.normal(size=(12, 4))[of] + 0.3 * dice.normal(size=(96, 4))
        table = pd.DataFrame(scores, columns=list("abcd"))
        alarms["pictures"] += critical_difference(table).rejected
        found = critical_difference(table, clusters=of)
        assert found.n == 12
        alarms["patients"] += found.rejected
    assert alarms["pictures"] > 30  # the test can fail
    assert alarms["patients"] <= 8


def test_nemenyis_test_wants_six_patients():
    table = normal_table(n=40, a=2, b=1, c=0)
    with pytest.raises(BadInput, match="6 clusters"):
        critical_difference(table, clusters=np.arange(40) % 5)


def test_refuses():
    with pytest.raises(BadInput, match="two methods"):
        compare_pairs(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(BadInput, match="3 methods"):
        critical_difference(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}))
    with pytest.raises(BadInput):
        holm([0.5, 1.5])
    with pytest.raises(BadInput):
        signed_rank([1.0], [1.0, 2.0])


@given(
    table=arrays(np.float64, st.tuples(st.integers(3, 60), st.just(4)), elements=st.integers(-8, 8).map(float)),
    jitter=st.sampled_from([0.0, 1e-3]),
    seed=st.integers(0, 99),
)
def test_many_pairs_at_once_are_what_scipy_says_of_each(table, jitter, seed):
    dice = np.random.default_rng(seed)
    table = table + jitter * dice.normal(size=table.shape)
    table[dice.random(table.shape) < 0.05] = np.nan
    for column, found in zip(table.T, signed_ranks(table), strict=True):
        moved = column[~np.isnan(column) & (column != 0)]
        assert found.n_missing == np.isnan(column).sum()
        assert found.n_zero == (column == 0).sum()
        if len(moved):
            alone = stats.wilcoxon(moved, alternative="two-sided")
            assert found.statistic == pytest.approx(alone.statistic)
            assert found.p == pytest.approx(min(alone.pvalue, 1.0))
        else:
            assert found.p == 1.0


@pytest.mark.parametrize("n", [1, 2, 4, 7, 9])
def test_a_few_tied_differences_are_counted_as_scipy_would(n):
    differences = np.random.default_rng(n).integers(-2, 3, size=(n, 8)) / 4
    for column, found in zip(differences.T, signed_ranks(differences), strict=True):
        moved = column[column != 0]
        if len(moved):
            known = stats.wilcoxon(moved)
            assert (found.statistic, found.p) == pytest.approx((known.statistic, known.pvalue))


def test_pairs_of_methods_and_pairs_with_controls_are_families_of_their_own():
    table = normal_table(a=1, b=0.7, c=-1, random=0, edges=0.1)
    frame = compare_pairs(table, controls=["random", "edges"], resamples=1).frame
    of = {row["method_a"] + "-" + row["method_b"]: row["controls"] for row in frame.to_dict("records")}
    assert of["a-b"] == 0
    assert of["c-edges"] == 1
    assert of["random-edges"] == 2
    for _, family in frame.groupby("controls"):
        np.testing.assert_allclose(family["p_holm"], multipletests(family["p"], method="holm")[1])
    assert len(frame[frame["controls"] == 2]) == 1
    assert (frame["p_holm"] == frame["p"])[frame["controls"] == 2].all()


@given(st.integers(0, 50), st.integers(0, 4))
@settings(max_examples=20, deadline=None)
def test_controls_beside_the_methods_cost_them_nothing(seed, controls):
    alone = normal_table(n=12, seed=seed, a=1, b=0.4, c=0)
    yardsticks = normal_table(n=12, seed=seed + 1, **{f"k{at}": 0.2 * at for at in range(controls)})
    beside = pd.concat([yardsticks, alone], axis=1)
    frame = compare_pairs(beside, controls=list(yardsticks.columns), resamples=1).frame
    columns = ["method_a", "method_b", "p", "p_holm", "winner", "significant"]
    own = frame.loc[frame["controls"] == 0, columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, compare_pairs(alone, resamples=1).frame[columns])


def test_rounding_is_not_tested():
    rng = np.random.default_rng(0)
    scores = rng.random(30)
    again = scores + np.abs(rng.normal(0, 1e-9, 30))
    tests = compare_pairs(pd.DataFrame({"a": scores, "b": again, "c": scores + 1e-4}), resamples=1).frame
    assert list(tests["significant"]) == [False, True, True]
    assert list(tests["n_zero"]) == [30, 0, 0]
    assert signed_rank(np.full(9, 1e-12), np.zeros(9)).n_zero == 0  # small numbers of their own are differences


def test_two_methods_do_not_mind_how_large_a_third_ones_scores_are():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": 0.015 + 0.001 * rng.random(20)})
    table["b"] = table["a"] + 0.05
    large = table.assign(**{f"large{i}": 1e5 * rng.random(20) for i in range(3)})
    for one in (table, large):
        first = compare_pairs(one, resamples=1).frame.iloc[0]
        assert (first["winner"], first["n_zero"], first["p"] < 1e-4) == ("b", 0, True)
        assert rank_methods(one).rank_of()["b"] < rank_methods(one).rank_of()["a"]


def test_rounding_is_no_rank_in_the_diagram_either():
    scores = np.random.default_rng(0).random(30)
    found = critical_difference(pd.DataFrame({"a": scores, "b": scores + 1e-9, "c": scores + 2e-9}))
    assert found.p == 1
    assert set(found.mean_ranks) == {2.0}


def test_differences_of_few_images_have_no_interval():
    rng = np.random.default_rng(0)
    few = compare_pairs(pd.DataFrame(rng.random((4, 2)), columns=["a", "b"])).frame.iloc[0]
    assert np.isnan([few["mean_low"], few["mean_high"]]).all()
    some = rng.random((8, 2))
    found = compare_pairs(pd.DataFrame(some, columns=["a", "b"])).frame.iloc[0]
    wanted = interval(some[:, 0] - some[:, 1], kind="expanded")
    assert (found["mean_low"], found["mean_high"]) == pytest.approx((wanted.low, wanted.high))
