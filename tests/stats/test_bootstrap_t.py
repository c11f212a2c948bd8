"""The bootstrap-t against a resample-by-resample computation, and what must hold of its p values and intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import weights
from heatproof.stats.bootstrap_t import bootstrap_t, moments, skewness


def noise(n=40, columns=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, columns))


def one_by_one(block, resamples, seed):
    """T* of every resample, from the drawn numbers themselves."""
    (drawn,) = weights(len(block), resamples, seed)
    found = np.zeros((resamples, block.shape[1]))
    for at, row in enumerate(drawn):
        for column, values in enumerate(block.T):
            there = ~np.isnan(values)
            taken = np.repeat(values[there], row[there].astype(int))
            spread = taken.std(ddof=1) / np.sqrt(len(taken)) if len(taken) > 1 else 0.0
            if spread > 1e-9:
                found[at, column] = abs(taken.mean() - values[there].mean()) / spread
    return found


@pytest.mark.parametrize("holes", [False, True])
def test_p_values_are_those_of_the_resamples(holes):
    block = noise(12, 4) + 0.3
    if holes:
        block[2, 1] = block[5, 1] = block[7, 3] = np.nan
    (found,) = bootstrap_t([block], resamples=99, seed=3)
    drawn = one_by_one(block, 99, 3)
    t = np.abs(found.t)
    np.testing.assert_allclose(found.p, (1 + (drawn >= t).sum(axis=0)) / 100)
    np.testing.assert_allclose(found.p_adjusted, (1 + (drawn.max(axis=1)[:, None] >= t).sum(axis=0)) / 100)
    np.testing.assert_allclose(found.critical, np.sort(drawn, axis=0)[94], rtol=1e-4)
    np.testing.assert_allclose(found.critical_adjusted, np.sort(drawn.max(axis=1))[94], rtol=1e-4)


def test_one_stratum_is_no_stratum():
    block = noise()
    (plain,), (within,) = bootstrap_t([block]), bootstrap_t([block], strata=[np.zeros(40, dtype=int)])
    np.testing.assert_allclose(within.error, plain.error)
    np.testing.assert_allclose(within.p, plain.p)


def test_clusters_of_one_image_are_images():
    block = noise()
    block[3, 2] = np.nan
    (plain,), (whole,) = bootstrap_t([block]), bootstrap_t([block], clusters=[np.arange(40)])
    np.testing.assert_allclose(whole.error, plain.error, rtol=1e-9)
    np.testing.assert_allclose(whole.p, plain.p)


def test_the_stratified_error_is_the_textbook_one():
    strata = np.repeat([0, 1, 2], [10, 20, 30])
    block = noise(60, 3) + strata[:, None]
    _, _, error = moments(block, strata)
    wanted = sum(
        (np.mean(strata == g) ** 2) * block[strata == g].var(axis=0, ddof=1) / (strata == g).sum() for g in range(3)
    )
    np.testing.assert_allclose(error, np.sqrt(wanted))
    assert (error < moments(block)[2]).all()


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=30, deadline=None)
def test_an_interval_leaves_out_zero_exactly_where_p_is_small(seed, grouped):
    block = noise(20, 6, seed) + np.linspace(0, 1.2, 6)
    strata = [np.arange(20) % 3] if grouped else None
    (found,) = bootstrap_t([block], strata=strata, resamples=199, seed=seed)
    for p, critical in ((found.p, found.critical), (found.p_adjusted, found.critical_adjusted)):
        low, high = found.mean - critical * found.error, found.mean + critical * found.error
        assert (((low > 0) | (high < 0)) == (p <= 0.05)).all()
    assert (found.p_adjusted >= found.p - 1e-12).all()


@given(st.floats(1e-6, 1e6), st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_scale_and_sign_do_not_matter(scale, seed):
    block = noise(15, 3, seed) + 0.2
    (one,), (other,) = bootstrap_t([block], resamples=99), bootstrap_t([-scale * block], resamples=99)
    np.testing.assert_allclose(other.p, one.p)
    np.testing.assert_allclose(other.p_adjusted, one.p_adjusted)
    np.testing.assert_allclose(other.mean, -scale * one.mean)


def test_families_do_not_cost_each_other_anything():
    block = noise(30, 6) + 0.3
    (together,) = bootstrap_t([block], [np.array([0, 0, 0, 1, 1, 1])])
    (alone,) = bootstrap_t([block[:, :3]])
    np.testing.assert_allclose(together.p_adjusted[:3], alone.p_adjusted)
    (all_six,) = bootstrap_t([block])
    assert (all_six.p_adjusted >= together.p_adjusted).all()


def test_blocks_are_one_family_and_drawn_independently():
    first, second = noise(30, 4) + 0.3, noise(50, 4, 1)
    one, two = bootstrap_t([first, second])
    (alone,) = bootstrap_t([first])
    assert (one.p_adjusted >= alone.p_adjusted).all()
    assert two.critical_adjusted[0] == one.critical_adjusted[0]


def test_copies_of_a_column_cost_nothing():
    column = noise(30, 1) + 0.4
    (one,), (many,) = bootstrap_t([column]), bootstrap_t([np.repeat(column, 9, axis=1)])
    assert many.p_adjusted[0] == one.p_adjusted[0]


def test_what_cannot_be_tested_has_no_p_and_takes_no_part():
    block = noise(20, 4)
    block[:, 1] = 2.0  # no variance
    block[:, 2] = 0.0
    block[:4, 2] = 1.0  # four images differ
    (found,) = bootstrap_t([block])
    assert np.isnan(found.p[[1, 2]]).all()
    (rest,) = bootstrap_t([block[:, [0, 3]]])
    np.testing.assert_allclose(found.p_adjusted[[0, 3]], rest.p_adjusted)
    assert np.isnan(bootstrap_t([noise(5, 2)])[0].p).all()


def test_whole_clusters_are_drawn_where_images_are_copies():
    base = noise(40, 1) + 0.35
    (few,), (copied,) = bootstrap_t([base]), bootstrap_t([np.repeat(base, 10, axis=0)])
    (whole,) = bootstrap_t([np.repeat(base, 10, axis=0)], clusters=[np.repeat(np.arange(40), 10)])
    assert whole.error[0] == pytest.approx(few.error[0])
    assert whole.p[0] == pytest.approx(few.p[0], abs=0.01)
    assert copied.error[0] < 0.4 * few.error[0]  # what ignoring the clusters would claim


def test_skewness_is_scipys():
    from scipy import stats

    block = np.exp(noise(50, 3))
    np.testing.assert_allclose(skewness(block), stats.skew(block))
    assert skewness(np.ones((9, 1)))[0] == 0


def test_refuses():
    with pytest.raises(BadInput, match="alpha"):
        bootstrap_t([noise()], alpha=0)
    with pytest.raises(BadInput, match="resamples"):
        bootstrap_t([noise()], resamples=0)


def test_a_card_without_bound_hides_nothing_under_the_others() -> None:
    """Differences next to nothing but for one picture: resamples without it have huge statistics."""
    rng = np.random.default_rng(0)
    calm = rng.normal(0.8, 1.0, (16, 6))
    wild = rng.normal(0, 0.01, (16, 3))
    wild[0] = 1.0
    block = np.hstack([calm, wild])
    family, card = np.zeros(9, dtype=np.int64), np.repeat([0, 1], [6, 3])
    (alone,) = bootstrap_t([calm])
    (apart,) = bootstrap_t([block], [family], cards=[card])
    (together,) = bootstrap_t([block], [family])
    assert (apart.p_adjusted[:6] <= 2 * alone.p_adjusted + 1e-12).all()
    clear = alone.p_adjusted < 0.02
    assert clear.sum() >= 3
    assert (apart.p_adjusted[:6][clear] < 0.05).all()
    assert (together.p_adjusted[:6] > 0.05).all()


def test_cards_of_alike_tails_share_the_largest_statistic() -> None:
    rng = np.random.default_rng(1)
    block = rng.normal(0.3, 1.0, (60, 8))
    family, card = np.zeros(8, dtype=np.int64), np.repeat([0, 1], 4)
    (one,), (two,) = bootstrap_t([block]), bootstrap_t([block], [family], cards=[card])
    assert np.array_equal(one.p_adjusted, two.p_adjusted)
    assert np.array_equal(one.critical_adjusted, two.critical_adjusted)
