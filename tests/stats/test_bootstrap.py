"""Bootstrap intervals: they cover, repeat under a seed, respect clusters and say what is missing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats import bootstrap
from heatproof.stats.bootstrap import (
    expanded_tails,
    interval,
    is_share,
    mean,
    median,
    resampled_means,
)

numbers = st.lists(st.floats(-100, 100, allow_nan=False), min_size=2, max_size=30)


@given(numbers, st.floats(-10, 10), st.floats(0.1, 10))
@settings(max_examples=50, deadline=None)
def test_interval_follows_shift_and_scale(values, shift, scale):
    plain = interval(values, resamples=200)
    moved = interval(np.array(values) * scale + shift, resamples=200)
    for a, b in ((plain.low, moved.low), (plain.estimate, moved.estimate), (plain.high, moved.high)):
        assert b == pytest.approx(a * scale + shift, abs=1e-6)


@given(numbers)
@settings(max_examples=50, deadline=None)
def test_interval_lies_within_the_data_and_repeats(values):
    found = interval(values, resamples=200)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found == interval(values, resamples=200)
    assert found.n == len(values)


@given(numbers, st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_missing_values_are_counted_and_change_nothing(values, holes):
    found = interval(values + [np.nan] * holes, resamples=100)
    plain = interval(values, resamples=100)
    assert found.missing == holes
    assert (found.estimate, found.low, found.high) == (plain.estimate, plain.low, plain.high)


@pytest.mark.parametrize("kind", ["percentile", "bca"])
def test_agrees_with_scipy(kind):
    values = np.random.default_rng(1).exponential(size=60)
    ours = interval(values, kind=kind, resamples=20000)
    method = "BCa" if kind == "bca" else "percentile"
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method=method, rng=np.random.default_rng(2)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.04 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.04 * width)


def test_covers_the_truth_about_as_often_as_promised():
    rng = np.random.default_rng(0)
    hits = 0
    for i in range(300):
        found = interval(rng.normal(size=40), resamples=400, seed=i)
        hits += found.low <= 0 <= found.high
    assert 0.88 <= hits / 300 <= 0.99


def test_any_statistic_and_the_mean_path_agree():
    values = np.random.default_rng(3).normal(size=50)
    slow = interval(values, lambda v: v.mean(axis=-1), resamples=4000)
    assert interval(values, mean, resamples=4000).low == pytest.approx(slow.low, abs=0.03)
    assert interval(values, median, resamples=500).estimate == np.median(values)


def test_one_image_has_no_interval():
    for values, n in (([0.3], 1), ([np.nan, np.nan], 0)):
        found = interval(values)
        assert found.n == n
        assert np.isnan(found.low)
        assert np.isnan(found.high)


def test_every_image_its_own_cluster_is_the_ordinary_bootstrap():
    values = np.random.default_rng(4).normal(size=40)
    plain, own = interval(values), interval(values, clusters=[np.arange(40)])
    assert (own.low, own.high, own.clusters) == (plain.low, plain.high, (40,))


@pytest.mark.parametrize("statistic", [mean, median])
def test_clusters_widen_the_interval_when_their_members_agree(statistic):
    rng = np.random.default_rng(5)
    scene = np.repeat(np.arange(12), 10)
    values = rng.normal(size=12)[scene] + 0.1 * rng.normal(size=120)
    plain = interval(values, statistic, resamples=600)
    clustered = interval(values, statistic, resamples=600, clusters=[scene])
    assert clustered.high - clustered.low > 2 * (plain.high - plain.low)


def test_two_cluster_ids_reach_the_known_variance():
    # Images x = s + o on a full grid of scenes and objects: var of the mean = var(s)/S + var(o)/O.
    rng = np.random.default_rng(6)
    scenes, objects = 40, 30
    s, o = rng.normal(size=scenes), rng.normal(size=objects)
    scene, thing = (g.ravel() for g in np.meshgrid(np.arange(scenes), np.arange(objects), indexing="ij"))
    drawn = resampled_means((s[scene] + o[thing])[:, None], resamples=4000, clusters=[scene, thing])
    assert drawn.std() ** 2 == pytest.approx(s.var() / scenes + o.var() / objects, rel=0.1)


def test_table_means_share_their_resamples():
    column = np.random.default_rng(7).normal(size=30)
    drawn = resampled_means(np.column_stack([column, column + 1]), resamples=50)
    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 1)


def test_blocks_do_not_change_the_result(monkeypatch):
    values = np.random.default_rng(8).normal(size=25)
    whole = interval(values, resamples=300)
    monkeypatch.setattr(bootstrap, "_CELLS", 25 * 7)
    assert interval(values, resamples=300) == whole


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ([1.0, np.inf], {}),
        ([[1.0, 2.0]], {}),
        ([1.0, 2.0], {"level": 1.0}),
        ([1.0, 2.0], {"resamples": 0}),
        ([1.0, 2.0], {"clusters": [[1]]}),
        ([1.0, 2.0], {"clusters": [[1, np.nan]]}),
        ([1.0, 2.0], {"kind": "bca", "clusters": [[1, 2]]}),
        ([0.0, 2.0], {"share": True}),
        ([0.0, 1.0], {"share": True, "statistic": median}),
    ],
)
def test_refuses(values, options):
    with pytest.raises(BadInput):
        interval(values, **options)


@given(st.integers(2, 200), st.sampled_from([0.0, 1.0]), st.floats(0.5, 0.99))
@settings(max_examples=40, deadline=None)
def test_a_share_without_exception_has_wilsons_interval(n, hit, level):
    found = interval(np.full(n, hit), level=level, share=True, resamples=20)
    theirs = stats.binomtest(int(hit) * n, n).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0 <= found.low <= found.estimate == hit <= found.high <= 1
    assert found.high - found.low > 0
    plain = interval(np.full(n, hit), level=level, resamples=20)
    assert (plain.low, plain.high) == (hit, hit)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=20).filter(lambda hits: len(set(hits)) == 2))
@settings(max_examples=20, deadline=None)
def test_a_share_with_hits_and_misses_keeps_its_bootstrap_interval(hits):
    assert interval(hits, share=True, resamples=50) == interval(hits, resamples=50)


def test_a_share_over_clusters_is_as_sure_as_the_fewest_of_them():
    scene, thing = np.repeat(np.arange(4), 6), np.tile(np.arange(6), 4)
    found = interval(np.ones(24), share=True, clusters=[scene, thing])
    few = interval(np.ones(4), share=True)
    assert (found.low, found.high) == (few.low, few.high)
    assert np.isnan(interval(np.ones(24), share=True, clusters=[np.zeros(24)]).low)


def test_expanded_percentiles_are_hesterbergs():
    """For five values t is 2.776, and √(5/4) mends the spread of resamples: 3.104 standard deviations."""
    assert expanded_tails(5, 0.95) == pytest.approx([stats.norm.cdf(-3.104), stats.norm.cdf(3.104)], rel=2e-3)


@pytest.mark.parametrize("n", [8, 20])
def test_expanded_intervals_hold_the_mean_as_often_as_they_say(n):
    rng = np.random.default_rng(n)
    spans = [interval(rng.normal(size=n), kind="expanded", resamples=400, seed=i) for i in range(400)]
    held = float(np.mean([span.low <= 0 <= span.high for span in spans]))
    plain = [interval(rng.normal(size=n), resamples=400, seed=i) for i in range(400)]
    assert held > 0.92
    assert held > float(np.mean([span.low <= 0 <= span.high for span in plain]))


def test_hits_and_misses_are_known_by_their_values():
    assert is_share([[0, 1], [np.nan, 1]])
    assert is_share([0, 0.5, 1])  # a tie is half a hit
    assert not is_share([1.0, 1.0])  # a constant could be anything
    assert not is_share([0, 0.3, 1])
    assert not is_share([0, -1, 1])
    assert not is_share([np.nan])
