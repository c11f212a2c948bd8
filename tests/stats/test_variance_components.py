"""Variance components against the numbers they were made from."""

import numpy as np
import pytest

from heatproof.errors import BadInput
from heatproof.stats.variance_components import variance_components


def made(n=400, k=6, r=3, picture=1.0, both=0.5, luck=0.25, seed=0):
    rng = np.random.default_rng(seed)
    method = np.sqrt(2) * rng.normal(size=(1, k, 1))
    scores = method + np.sqrt(picture) * rng.normal(size=(n, 1, 1)) + np.sqrt(both) * rng.normal(size=(n, k, 1))
    return scores + np.sqrt(luck) * rng.normal(size=(n, k, r)), method


def test_they_are_found_again():
    scores, method = made()
    found = variance_components(scores)
    assert found.picture == pytest.approx(1.0, rel=0.2)
    assert found.picture_method == pytest.approx(0.5, rel=0.1)
    assert found.luck == pytest.approx(0.25, rel=0.1)
    assert found.method == pytest.approx(method.var(ddof=1), abs=0.1)
    assert found.variance_of_difference(400) == pytest.approx(2 * (0.5 + 0.25 / 3) / 400, rel=0.1)


def test_they_add_up_to_the_variance_of_a_difference():
    scores, _ = made(n=50, r=1, luck=0)
    found = variance_components(scores)
    differences = scores[:, :, None, 0] - scores[:, None, :, 0]
    a, b = np.triu_indices(6, 1)
    assert 2 * found.picture_method == pytest.approx(differences[:, a, b].var(axis=0, ddof=1).mean())


def test_negative_estimates_stand_as_zero_and_are_kept_raw():
    scores = np.random.default_rng(0).normal(size=(8, 3, 2))
    found = variance_components(scores - scores.mean(axis=(1, 2), keepdims=True))
    assert found.picture == 0
    assert found.raw[1] < 0


def test_one_seed_says_nothing_of_luck():
    scores, _ = made(r=1)
    assert np.isnan(variance_components(scores[:, :, 0]).luck)


def test_pictures_with_holes_are_left_out():
    scores, _ = made(n=20)
    scores[3, 2, 1] = np.nan
    assert variance_components(scores).n == 19
    with pytest.raises(BadInput, match="two pictures"):
        variance_components(scores[:1])
