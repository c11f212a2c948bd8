"""A method's standing against blind controls follows from the tests, and the marks say what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from heatproof.results.run_info import run_info
from heatproof.stats.against_blind import MARKS, MEANING, against_blind, legend
from heatproof.stats.page import compare_means


def judged(**means: float):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: mean + 0.01 * rng.normal(size=30) for name, mean in means.items()})
    return compare_means(table, controls=["random", "centre", "oracle"])


def test_a_method_is_clear_only_of_controls_that_it_beats_all() -> None:
    found = judged(good=0.9, fair=0.5, poor=0.2, random=0.0, centre=0.5, oracle=1.0)
    blind = ["random", "centre"]
    assert against_blind(found, ["good", "fair", "poor"], blind) == {
        "good": "clear",  # the oracle, which is not blind, beats it
        "fair": "level",
        "poor": "beaten",  # by one of them, though it beats the other
    }
    assert against_blind(found, ["poor"], ["random"]) == {"poor": "clear"}


def test_without_a_blind_control_nothing_is_known() -> None:
    found = judged(good=0.9, oracle=1.0)
    assert against_blind(found, ["good"], []) == {"good": "unknown"}
    assert against_blind(found, ["good"], ["edges"]) == {"good": "unknown"}  # it has no scores here
    assert against_blind(None, ["good"], ["random"]) == {"good": "unknown"}


@pytest.mark.parametrize("met", [(), ("clear",), ("level",), ("level", "beaten")])
def test_the_legend_explains_the_marks_that_are_there_and_no_others(met: tuple[str, ...]) -> None:
    text = legend(met)
    assert {one for one in MARKS if MARKS[one] in text} == {one for one in MARKS if MEANING[one] in text}
    assert {one for one in MARKS if MARKS[one] in text} == set(met) & set(MARKS)


def test_an_oracle_is_a_control_and_not_blind() -> None:
    def is_blind(about: dict[str, Any]) -> bool:
        return run_info({"methods": {"m": about}}).method("m").blind

    assert is_blind({"control": True, "name": "centre"})  # stored before the trait was
    assert is_blind({"control": True, "blind": True, "name": "of a plug-in"})
    assert not is_blind({"control": True, "name": "oracle"})
    assert not is_blind({"control": True, "blind": False, "name": "random"})
    assert not is_blind({"name": "random"})
