"""CR3 and Bell–McCaffrey degrees of freedom against their definitions by matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.cluster_robust import bell_mccaffrey_df, clustered_means, cr3_variance


def matrices(sizes):
    """Degrees of freedom from the matrices of the definition."""
    n = sizes.sum()
    centred = np.diag(sizes) - np.outer(sizes, sizes) / n
    q = np.diag(1 / (1 - sizes / n)) @ centred
    return np.trace(q) ** 2 / np.trace(q @ q)


@given(st.lists(st.integers(1, 30), min_size=2, max_size=12))
def test_degrees_of_freedom_are_those_of_the_matrices(sizes):
    assert bell_mccaffrey_df(np.array(sizes, dtype=float)) == pytest.approx(matrices(np.array(sizes, dtype=float)))


@pytest.mark.parametrize("groups", [2, 6, 40])
def test_equal_clusters_have_one_degree_less_than_clusters(groups):
    assert bell_mccaffrey_df(np.full(groups, 5.0)) == pytest.approx(groups - 1)


@given(st.integers(0, 1000), st.integers(3, 9))
@settings(deadline=None, max_examples=40)
def test_cr3_is_the_jackknife_over_clusters(seed, groups):
    rng = np.random.default_rng(seed)
    index = np.concatenate([np.arange(groups), rng.integers(0, groups, 20)])
    values = rng.normal(size=(len(index), 2))
    left = np.stack([values[index != g].mean(axis=0) for g in range(groups)])
    wanted = (groups - 1) / groups * ((left - values.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(cr3_variance(values, index), wanted)


def test_clusters_of_one_image_give_students_t():
    values = np.random.default_rng(0).normal(0.4, 1, (25, 3))
    found = clustered_means(values, [np.arange(25)])
    wanted = stats.ttest_1samp(values, 0)
    np.testing.assert_allclose(found.p, wanted.pvalue)
    np.testing.assert_allclose(found.half_width(0.05), stats.t.ppf(0.975, 24) * values.std(0, ddof=1) / 5)


def test_two_crossed_kinds_are_never_surer_than_one():
    rng = np.random.default_rng(1)
    values, scene, thing = rng.normal(size=(80, 40)), rng.integers(0, 8, 80), rng.integers(0, 9, 80)
    both = clustered_means(values, [scene, thing])
    for one in (scene, thing):
        assert (both.error >= clustered_means(values, [one]).error - 1e-12).all()
    assert both.clusters[0] == 8


def test_a_second_clustering_that_lies_in_the_first_changes_nothing_but_degrees_of_freedom():
    rng = np.random.default_rng(2)
    patient = np.repeat(np.arange(10), 6)
    values = rng.normal(size=(60, 3)) + rng.normal(size=(10, 3))[patient]
    both = clustered_means(values, [patient, np.repeat(np.arange(30), 2)])
    np.testing.assert_allclose(both.error, clustered_means(values, [patient]).error)


@pytest.mark.parametrize(("sizes", "enough"), [((5,) * 5, False), ((5,) * 6, True), ((40, 5, 5, 5, 5, 5), False)])
def test_few_or_lopsided_clusters_give_no_p(sizes, enough):
    index = np.repeat(np.arange(len(sizes)), sizes)
    found = clustered_means(np.random.default_rng(0).normal(size=(len(index), 2)), [index])
    assert (~np.isnan(found.p)).all() == enough
    assert (found.error > 0).all()


def test_clusters_that_do_not_vary_give_no_p():
    values = np.tile([1.0, -1.0], 12)[:, None] + 3
    found = clustered_means(values, [np.repeat(np.arange(12), 2)])
    assert np.isnan(found.p[0])
    assert found.error[0] == 0


def test_holes_are_left_out_of_the_clusters():
    rng = np.random.default_rng(3)
    values, index = rng.normal(size=(40, 2)), rng.integers(0, 8, 40)
    values[:7, 1] = np.nan
    found = clustered_means(values, [index])
    alone = clustered_means(values[7:, 1:], [index[7:]])
    assert (found.p[1], found.df[1], found.n[1]) == (alone.p[0], alone.df[0], 33)


def test_refuses_three_kinds():
    with pytest.raises(BadInput, match="one or two"):
        clustered_means(np.ones((4, 1)), [np.arange(4)] * 3)
