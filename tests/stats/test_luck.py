"""Luck against simulated components, and the limits of what few repeats can say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heatproof.errors import BadInput
from heatproof.stats.luck import luck_of


def study(seed: int, pictures: int = 400, few: int = 5, seeds: int = 3, spread: float = 1.0, luck: float = 0.5):
    dice = np.random.default_rng(seed)
    level = dice.normal(2, spread, pictures)
    scores = pd.Series(level + dice.normal(0, luck, pictures), index=[f"p{at}" for at in range(pictures)])
    again = pd.DataFrame(level[:few, None] + dice.normal(0, luck, (few, seeds - 1)), index=scores.index[:few])
    return scores, again


def test_luck_and_spread_are_those_that_were_simulated():
    found = [luck_of("m", *study(seed)) for seed in range(200)]
    assert np.mean([one.luck**2 for one in found]) == pytest.approx(0.25, rel=0.08)
    assert np.mean([one.spread**2 for one in found]) == pytest.approx(1.25, rel=0.05)
    held = np.mean([one.low <= 0.5 <= one.high for one in found])
    assert 0.9 <= held <= 0.99
    first = found[0]
    assert (first.pictures, first.repeated, first.seeds) == (400, 5, 3)
    assert first.moves == pytest.approx(first.luck / 20)
    assert first.share == pytest.approx(first.luck**2 / first.spread**2)


def test_the_mean_moves_by_as_much_as_it_says():
    means = [study(seed, pictures=64, spread=0.0)[0].mean() for seed in range(400)]
    moves = np.sqrt(np.mean([luck_of("m", *study(seed, pictures=64, spread=0.0)).moves ** 2 for seed in range(400)]))
    assert np.std(means) == pytest.approx(moves, rel=0.1)


def test_no_luck_where_nothing_is_drawn():
    scores, again = study(0, luck=0.0)
    found = luck_of("m", scores, again)
    assert (found.luck, found.low, found.high, found.share) == pytest.approx((0, 0, 0, 0), abs=1e-12)


def test_holes_count_for_nothing():
    scores, again = study(1, few=8)
    holed = again.copy()
    holed.iloc[0] = np.nan
    found = luck_of("m", scores, holed)
    assert found.luck == luck_of("m", scores, again.iloc[1:]).luck
    assert found.repeated == 7
    assert np.isnan(luck_of("m", scores, again.iloc[:0]).luck)


def test_pictures_that_were_not_judged_are_refused():
    scores, again = study(2)
    with pytest.raises(BadInput, match="among those judged"):
        luck_of("m", scores.iloc[1:], again)
