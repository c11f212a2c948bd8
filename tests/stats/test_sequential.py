"""Confidence sequences hold at every look; a race stops for the right reasons."""

import numpy as np
import pytest
from scipy import integrate, stats

from heatproof.errors import BadInput
from heatproof.stats.sequential import Race, alpha_spent, empirical_bernstein, mixture_scale, outcomes, t_mixture


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


def test_outcomes():
    found = outcomes(np.array([1.0, -1.0, 0.01, 0.3]), np.array([0.5, 0.5, 0.02, 0.5]), margin=0.05)
    assert found.tolist() == ["better", "worse", "equivalent", "open"]


def shards(seed, means, count, size=20):
    rng = np.random.default_rng(seed)
    return [rng.normal(means, 1, (size, len(means))) for _ in range(count)]


def test_a_race_finds_the_best_and_drops_the_rest():
    race = Race(("a", "b", "c"), margin=0.1)
    for shard in shards(0, [1.0, 0.0, 0.0], 40):
        race.add(shard)
        if race.first_place_decided:
            break
    assert race.running == ["a"]
    assert race.first_place_decided
    assert race.decided["a", "b"] == "better"
    worse = Race(("a", "b"), higher_is_better=False)
    for shard in shards(0, [1.0, 0.0], 40):
        worse.add(shard)
    assert worse.running == ["b"]


def test_a_dropped_method_keeps_its_decisions_and_frees_no_alpha():
    race = Race(("a", "b", "c"), margin=0.1)
    level = race.level
    assert level == pytest.approx(0.05 / 3)
    for shard in shards(1, [1.5, 0.0, 0.0], 15):
        race.add(shard)
    before = dict(race.decided)
    assert before["a", "c"] == "better"
    for shard in shards(2, [1.5, 0.0, 0.0], 5):
        shard[:, 2] = np.nan
        race.add(shard)
    assert race.level == level
    assert {pair: race.decided[pair] for pair in before} == before


def test_equal_methods_become_equivalent():
    race = Race(("a", "b"), margin=0.3)
    for shard in shards(3, [0.0, 0.0], 60):
        race.add(shard)
    assert race.decided == {("a", "b"): "equivalent"}
    assert race.open == []


def test_spent_alpha_adds_up():
    spent = alpha_spent(0.05, [0.25, 0.5, 1.0])
    assert sum(spent) == pytest.approx(0.05)
    assert spent == sorted(spent)
    with pytest.raises(BadInput, match="rise"):
        alpha_spent(0.05, [0.5, 0.5])


def test_refuses():
    with pytest.raises(BadInput, match="at least 20 pictures"):
        Race(("a", "b")).add(np.zeros((5, 2)))
    with pytest.raises(BadInput, match="two methods"):
        Race(("a",))
    with pytest.raises(BadInput, match="lie in"):
        empirical_bernstein(np.array([[2.0]]), 0.05, -1, 1)
