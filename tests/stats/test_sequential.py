"""Confidence sequences hold at every look."""

import numpy as np
import pytest
from scipy import integrate, stats

from heatproof.errors import BadInput
from heatproof.stats.sequential import empirical_bernstein, mixture_scale, t_mixture


def test_the_t_mixture_ends_where_the_mixture_of_likelihoods_reaches_one_over_alpha():
    """At the limit the e-value of the mean is 1/alpha: the right Haar mixture over sigma, Gaussian over the effect."""
    rng = np.random.default_rng(0)
    x, alpha, scale = rng.normal(size=12), 0.05, 4.0
    centre, half = t_mixture(x[:, None], alpha, scale)
    t = np.sqrt(12) * half[-1, 0] / x.std(ddof=1)
    null = stats.t.pdf(t, 11)
    mixed, _ = integrate.quad(
        lambda effect: stats.nct.pdf(t, 11, np.sqrt(12) * effect) * stats.norm.pdf(effect, scale=scale**-0.5), -4, 4
    )
    assert mixed / null == pytest.approx(1 / alpha, rel=0.01)
    assert centre[-1, 0] == pytest.approx(x.mean())


def test_sequences_do_not_depend_on_scale_or_place():
    x = np.random.default_rng(1).normal(size=(30, 2))
    centre, half = t_mixture(x, 0.01, 3.0)
    moved, wider = t_mixture(5 * x + 2e3, 0.01, 3.0)
    np.testing.assert_allclose(moved, 5 * centre + 2e3)
    finite = np.isfinite(half)
    np.testing.assert_allclose(wider[finite], 5 * half[finite], rtol=1e-6)


def test_peeking_is_safe_where_a_fixed_interval_is_not():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 400))
    _, half = t_mixture(x, 0.05, mixture_scale(50, 0.05))
    mean = np.cumsum(x, axis=0) / np.arange(1, 201)[:, None]
    assert (np.abs(mean) > half).any(axis=0).mean() <= 0.07
    naive = 1.96 / np.sqrt(np.arange(1, 201))[:, None]
    assert (np.abs(mean) > naive)[10:].any(axis=0).mean() > 0.2  # the test can fail
    hits = (rng.random((200, 200)) < 0.5).astype(float) - (rng.random((200, 200)) < 0.5)
    centre, wide = empirical_bernstein(hits, 0.05, -1, 1)
    assert (np.abs(centre) > wide).any(axis=0).mean() <= 0.05


def test_refuses():
    with pytest.raises(BadInput, match="lie in"):
        empirical_bernstein(np.array([[2.0]]), 0.05, -1, 1)
