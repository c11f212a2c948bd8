"""Alpha against the library, the closed form and a hand-written table; correlations with their n."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import expanded_tails, weights
from heatproof.stats.ordinal_alpha import weighted_alpha
from heatproof.stats.ranks import rank
from heatproof.stats.reliability import (
    agreement,
    alpha_interval,
    joint_failures,
    krippendorff_alpha,
    spearman_matrix,
)

cells = st.one_of(st.integers(0, 5).map(float), st.just(np.nan))
rough_tables = arrays(np.float64, st.tuples(st.integers(2, 9), st.integers(2, 6)), elements=cells)


def ranked(scores):
    kept = scores[(~np.isnan(scores)).sum(axis=1) >= 2]
    ranks = rank(kept)
    assume(len(ranks) >= 2)
    # Values that no second mosaic can be paired with may leave a single pairable rank: alpha is then 0 / 0.
    pairable = ranks[:, (~np.isnan(ranks)).sum(axis=0) >= 2]
    assume(len(np.unique(pairable[~np.isnan(pairable)])) > 1)
    return ranks


@given(st.integers(2, 12), st.integers(2, 7), st.integers(0, 10**6))
@settings(deadline=None)
def test_alpha_equals_the_closed_form_on_complete_rankings(n, m, seed):
    scores = np.random.default_rng(seed).random((n, m))
    r = np.mean([stats.spearmanr(scores[i], scores[j])[0] for i in range(n) for j in range(i)])
    assert krippendorff_alpha(scores) == pytest.approx(r + (1 - r) / (n * m), abs=1e-12)


@given(rough_tables, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_alpha_ignores_the_order_of_methods_and_mosaics(scores, random):
    ranked(scores)
    rows, columns = list(range(scores.shape[0])), list(range(scores.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    assert krippendorff_alpha(scores[rows][:, columns]) == pytest.approx(krippendorff_alpha(scores), abs=1e-9)


@given(arrays(np.float64, (5, 4), elements=st.integers(0, 9).map(float)))
@settings(deadline=None)
def test_alpha_of_complete_scores_ignores_the_direction(scores):
    ranked(scores)
    assert krippendorff_alpha(-scores) == pytest.approx(krippendorff_alpha(scores), abs=1e-9)


@given(st.integers(2, 10), st.integers(2, 6))
@settings(deadline=None)
def test_unanimous_mosaics_reach_one(n, m):
    assert krippendorff_alpha(np.tile(np.arange(float(m)), (n, 1))) == pytest.approx(1)


def test_raters_are_mosaics_and_units_are_methods():
    # Two mosaics in opposite order over three methods: r = -1, so alpha = -1 + 2 / 6.
    assert krippendorff_alpha([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]) == pytest.approx(-2 / 3)


def test_a_mosaic_with_one_score_says_nothing():
    scores = np.random.default_rng(0).random((6, 4))
    more = np.vstack([scores, [np.nan, np.nan, 1.0, np.nan]])
    assert krippendorff_alpha(more) == krippendorff_alpha(scores)
    found = alpha_interval(more, resamples=50)
    assert (found.n_mosaics, found.dropped_mosaics, found.n_methods) == (6, 1, 4)


def test_interval_covers_the_alpha_of_the_population():
    rng = np.random.default_rng(1)
    quality = np.array([0.0, 0.4, 0.8, 1.2])

    def sample(n):
        return quality + rng.normal(size=(n, 4))

    truth = krippendorff_alpha(sample(20000))
    found = [alpha_interval(sample(25), resamples=200, seed=i) for i in range(120)]
    hits = np.mean([f.low <= truth <= f.high for f in found])
    assert 0.85 <= hits <= 1
    assert all(f.low <= f.high for f in found)


def test_interval_of_few_mosaics_covers_the_alpha_of_the_population():
    rng = np.random.default_rng(5)
    quality = 0.4 * np.arange(8)
    truth = krippendorff_alpha(quality + rng.normal(size=(6000, 8)))
    found = [alpha_interval(quality + rng.normal(size=(6, 8)), seed=i) for i in range(300)]
    assert np.mean([f.low <= truth <= f.high for f in found]) >= 0.92  # plain percentiles: 0.86


def test_interval_reads_the_percentiles_that_so_many_mosaics_need():
    scores = np.random.default_rng(6).random((9, 4)) + 0.3 * np.arange(4)
    ranks = rank(scores)
    drawn = np.concatenate([weighted_alpha(ranks, block) for block in weights(9, 1000, 0)])
    found = alpha_interval(scores)
    assert (found.low, found.high) == tuple(np.nanquantile(drawn, expanded_tails(9, 0.95)))


def test_too_few_mosaics_have_an_alpha_and_no_interval():
    scores = np.random.default_rng(7).random((5, 6))
    assert np.isfinite(alpha_interval(scores).low)
    few = alpha_interval(scores[:4])
    assert few.alpha == krippendorff_alpha(scores[:4])
    assert np.isnan([few.low, few.high]).all()


def test_copies_of_a_mosaic_do_not_lift_the_bootstrap():
    # Random rankings: alpha is 0 on average, and must stay so when mosaics are drawn twice.
    rng = np.random.default_rng(2)
    centres = []
    for i in range(60):
        ranks = rank(rng.random((6, 5)))
        counts = np.random.default_rng(i).multinomial(6, [1 / 6] * 6, size=200).astype(float)
        centres.append(np.nanmean(weighted_alpha(ranks, counts)) - krippendorff_alpha(ranks))
    assert abs(np.mean(centres)) < 0.04


def test_interval_repeats_and_ties_are_fine():
    scores = np.random.default_rng(3).integers(0, 3, (30, 5)).astype(float)
    found = alpha_interval(scores, resamples=100)
    assert found == alpha_interval(scores, resamples=100)
    assert found.low < found.alpha < found.high


@pytest.mark.parametrize(
    "scores",
    [
        np.ones((4, 3)),
        np.array([[1.0, 2.0]]),
        np.array([[1.0, 2.0, np.nan, np.nan], [np.nan, np.nan, 1.0, 2.0]]),
        np.ones(4),
        np.array([[np.inf, 1.0], [1.0, 2.0]]),
    ],
)
def test_undefined_alpha_is_refused(scores):
    with pytest.raises(BadInput):
        krippendorff_alpha(scores)


def test_spearman_is_pairwise_complete_with_n():
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.random((20, 3)), columns=list("abc"))
    table.loc[:4, "a"] = np.nan
    found = spearman_matrix(table)
    both = table[["a", "b"]].dropna()
    assert found.rho.loc["a", "b"] == pytest.approx(stats.spearmanr(both["a"], both["b"])[0])
    assert found.n.loc["a", "b"] == 15
    assert found.n.loc["b", "c"] == 20
    two = spearman_matrix(table[["b", "c"]])  # two methods make a matrix too
    assert two.rho.shape == (2, 2)
    assert two.rho.loc["b", "c"] == found.rho.loc["b", "c"]


def test_joint_failure_needs_correlation_and_low_scores():
    base = np.linspace(0, 0.4, 20)
    table = pd.DataFrame({"a": base, "b": base**2, "good": base + 0.5, "other": base[::-1]})
    found = joint_failures(table)
    assert [(f.first, f.second) for f in found] == [("a", "b")]
    assert found[0].rho == pytest.approx(1)
    assert found[0].both_bad == 1
    assert "a and b agree (Spearman 1.00, n = 20) while both score badly" in str(found[0])
    errors = joint_failures(1 - table, higher_is_better=False)
    assert [(f.first, f.second) for f in errors] == [("a", "b")]


def test_agreement_uses_all_images_and_both_rankings():
    tables = {
        "cars": pd.DataFrame({"a": [3.0, 3.0, 3.0], "b": [2.0, 2.0, 2.0], "c": [0.0, 0.0, 90.0]}),
        "dogs": pd.DataFrame({"c": [1.0, 1.0], "b": [2.0, 2.0], "a": [3.0, 3.0]}),
    }
    found = agreement(tables)
    assert found.alpha_median == pytest.approx(1)
    assert found.alpha_mean < 1
    assert list(found.mean_ranks.loc["cars"]) == [2, 3, 1]
    assert found.alpha_mean == pytest.approx(krippendorff_alpha(-found.mean_ranks.to_numpy()))
    reversed_order = agreement({name: -t for name, t in tables.items()}, higher_is_better=False)
    assert reversed_order.alpha_mean == pytest.approx(found.alpha_mean)


def test_a_method_that_is_undefined_on_some_mosaics_takes_none_from_the_others():
    nan = np.nan
    cars = pd.DataFrame({"a": [9.0, 1.0, 1.0, 1.0], "b": [2.0, 2.0, 2.0, 2.0], "c": [nan, nan, nan, 1.5]})
    dogs = pd.DataFrame({"a": [3.0, 3.0], "b": [2.0, 2.0], "c": [1.0, 1.0]})
    found = agreement({"cars": cars, "dogs": dogs})
    assert list(found.mean_ranks.loc["cars"]) == [1, 2, 3]  # on the one mosaic that has all it would be b, c, a
    assert list(found.median_ranks.loc["cars"]) == [3, 1, 2]
    assert list(found.n.loc["cars"]) == [4, 4, 1]
    assert found.mosaics.to_dict() == {"cars": 4, "dogs": 2}


def test_a_method_without_any_score_is_not_ranked():
    cars = pd.DataFrame({"a": [1.0, 1.0], "b": [2.0, 2.0], "c": [np.nan, np.nan]})
    dogs = pd.DataFrame({"a": [1.0, 1.0], "b": [2.0, 2.0], "c": [0.0, 0.0]})
    found = agreement({"cars": cars, "dogs": dogs})
    assert np.isnan(found.mean_ranks.loc["cars", "c"])
    assert found.alpha_mean == pytest.approx(1), "the two that both rank stand alike"


def test_the_best_has_rank_1_in_either_direction():
    tables = {name: pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0 + i]}) for i, name in enumerate(("cars", "dogs"))}
    assert list(agreement(tables).mean_ranks.loc["cars"]) == [3, 2, 1]
    assert list(agreement(tables, higher_is_better=False).mean_ranks.loc["cars"]) == [1, 2, 3]


def test_two_mosaics_have_no_correlation_and_no_interval():
    table = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [1.0, 2.0, 3.0], "c": [2.0, 1.0, 3.0]})
    found = spearman_matrix(table)
    assert np.isnan(found.rho.loc["a", "b"])
    assert found.n.loc["a", "b"] == 2
    alone = alpha_interval(table[["b", "c"]].to_numpy()[:2], resamples=50)
    assert np.isnan([alone.low, alone.high]).all()


def test_agreement_names_what_is_missing():
    table = pd.DataFrame({"a": [1.0], "b": [2.0]})
    with pytest.raises(BadInput, match="dogs lacks b"):
        agreement({"cars": table, "dogs": table[["a"]]})
    with pytest.raises(BadInput, match="at least two"):
        agreement({"cars": table})


def clustered(seed, groups=12, size=6, methods=5):
    """Scores without any common order, but every group of mosaics has one of its own."""
    dice = np.random.default_rng(seed)
    of = np.repeat(np.arange(groups), size)
    return dice.normal(size=(groups, methods))[of] + 0.3 * dice.normal(size=(groups * size, methods)), of


def test_the_interval_of_alpha_draws_whole_groups():
    studies = [clustered(seed) for seed in range(40)]
    plain = [alpha_interval(scores, resamples=200) for scores, _ in studies]
    whole = [alpha_interval(scores, of, resamples=200) for scores, of in studies]
    true = np.mean([one.alpha for one in plain])
    for one, other in zip(plain, whole, strict=True):
        assert one.alpha == other.alpha
        assert (one.n_clusters, other.n_clusters) == (None, 12)
    alone, together = (sum(one.low <= true <= one.high for one in found) / 40 for found in (plain, whole))
    assert alone < 0.8  # mosaics of one group count as so many witnesses
    assert together >= 0.85


def test_every_mosaic_a_group_by_itself_changes_nothing():
    scores = np.random.default_rng(3).random((20, 4))
    own = alpha_interval(scores, np.arange(20))
    free = alpha_interval(scores)
    assert (own.low, own.high) == (free.low, free.high)


def test_few_groups_give_no_interval():
    scores, of = clustered(0, groups=5)
    assert np.isnan(alpha_interval(scores, of).low)
