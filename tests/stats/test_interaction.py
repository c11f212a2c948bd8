"""Method × class: found where the order turns, not where groups merely differ or vary unequally."""

import numpy as np
import pandas as pd
import pytest

from heatproof.errors import BadInput
from heatproof.stats.interaction import interaction

CLASSES = np.array(["cars", "cats", "cups"] * 30)


def made(seed=0, turn=0.0, spread=(1, 1, 1)):
    rng = np.random.default_rng(seed)
    level = {"cars": 0.0, "cats": 5.0, "cups": -3.0}
    scale = np.array([dict(zip(level, spread, strict=True))[name] for name in CLASSES])
    base = np.array([level[name] for name in CLASSES])
    frame = pd.DataFrame({name: base + scale * rng.normal(size=90) for name in "abc"})
    frame["a"] += turn * np.where(CLASSES == "cars", 1, np.where(CLASSES == "cats", -1, 0))
    return frame


def test_first_on_cars_last_on_cats():
    found = interaction(made(turn=2), CLASSES)
    assert found.p < 0.01
    (message,) = found.sentences()
    assert "a is first on cars, last on cats" in message
    (turned,) = interaction(made(turn=2), CLASSES, higher_is_better=False).sentences()
    assert "a is first on cats, last on cars" in turned


@pytest.mark.parametrize("spread", [(1, 1, 1), (0.2, 1, 3)])
def test_no_interaction_is_rarely_found(spread):
    wrong = sum(interaction(made(seed, spread=spread), CLASSES, resamples=199).p <= 0.05 for seed in range(100))
    assert wrong <= 11  # 5 %: more than 11 of 100 has a probability of .004


def test_a_method_that_is_better_everywhere_is_no_interaction():
    frame = made()
    frame["a"] += 10
    assert interaction(frame, CLASSES).sentences() == []


def test_small_groups_are_named_and_left_out():
    labels = CLASSES.copy()
    labels[:3] = "rare"
    assert interaction(made(), labels).left_out == ("rare",)


def test_refuses():
    with pytest.raises(BadInput, match="two groups"):
        interaction(made(), ["one"] * 90)
    with pytest.raises(BadInput, match="one per picture"):
        interaction(made(), ["one"])
