"""Needed pictures against simulation and statsmodels."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from heatproof.errors import BadInput
from heatproof.stats.power import detectable_difference, needed_pictures, plan


@pytest.mark.parametrize(("difference", "tests"), [(0.5, 1), (0.2, 28), (-0.2, 28), (1.0, 3)])
def test_statsmodels_agrees(difference, tests):
    wanted = TTestPower().solve_power(abs(difference), power=0.8, alpha=0.05 / tests, alternative="two-sided")
    assert needed_pictures(difference, 1, tests=tests) == max(6, np.ceil(wanted))


def test_so_many_pictures_do_find_it():
    n = needed_pictures(0.4, 1)
    draws = np.random.default_rng(0).normal(0.4, 1, (n, 4000))
    assert (stats.ttest_1samp(draws, 0).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.025)


def test_the_detectable_difference_is_the_other_way_round():
    difference = detectable_difference(120, 2.0, tests=10)
    assert needed_pictures(difference, 2.0, tests=10) == pytest.approx(120, abs=1)
    assert detectable_difference(50, 0.0) == 0


def test_a_plan_names_every_pair():
    rng = np.random.default_rng(0)
    pilot = pd.DataFrame({"a": rng.normal(1, 1, 30), "b": rng.normal(0, 1, 30), "c": 0.0, "d": 0.0})
    found = {(one.first, one.second): one for one in plan(pilot, 200, cards=2)}
    assert len(found) == 6
    assert found["c", "d"].pictures is None
    assert found["a", "b"].pictures == needed_pictures(found["a", "b"].mean_difference, found["a", "b"].sd, tests=12)


def test_refuses():
    with pytest.raises(BadInput, match="difference of 0"):
        needed_pictures(0, 1)
    with pytest.raises(BadInput, match="power"):
        needed_pictures(1, 1, power=2)
