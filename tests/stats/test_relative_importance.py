"""Correlation of short series, and the premises of relative importance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heatproof.stats.relative_importance import pearson, unknown, violations

GOOD = {
    "object": {"composite": 0.95, "without": 0.1},
    "scene": {"composite": 0.95, "without": 0.96},
}


@given(st.integers(0, 2**31), st.integers(4, 12))
def test_r_and_its_interval_are_scipys(seed: int, n: int) -> None:
    one, other = np.random.default_rng(seed).normal(size=(2, n))
    found, known = pearson(one.tolist(), other.tolist()), stats.pearsonr(one, other)
    assert found.r == pytest.approx(known.statistic)
    span = known.confidence_interval()
    assert (found.low, found.high) == pytest.approx((span.low, span.high))


def test_the_published_intervals_come_out() -> None:
    x = np.arange(10.0)
    noise = np.array([1.0, -1, 1, -1, 1, -1, 1, -1, 1, -1])
    y = x + 3 * noise
    found = pearson(x.tolist(), y.tolist())
    half = 1.959964 / math.sqrt(7)
    assert found.low == pytest.approx(math.tanh(math.atanh(found.r) - half), abs=1e-5)
    assert found.n == 10


def test_a_series_that_does_not_vary_has_no_correlation() -> None:
    assert math.isnan(pearson([0.0] * 10, list(range(10))).r)
    assert pearson([1.0, 2.0, math.nan, 3.0], [1.0, 2.0, 9.0, 3.0]).n == 3


def test_good_models_violate_nothing() -> None:
    assert violations(GOOD, 10, 200) == []


def test_an_object_model_that_sees_absent_objects_is_flagged() -> None:
    output = violations({**GOOD, "object": {"composite": 0.95, "without": 0.3}}, 10, 200)
    assert len(output) == 1
    assert "not there" in output[0]


def test_a_scene_model_hurt_by_removal_is_flagged() -> None:
    output = violations({**GOOD, "scene": {"composite": 0.95, "without": 0.8}}, 10, 200)
    assert len(output) == 1
    assert "15 points" in output[0]


def test_a_model_that_knows_nothing_is_flagged() -> None:
    assert "only 20%" in violations({**GOOD, "object": {"composite": 0.2, "without": 0.1}}, 10, 200)[0]


ALL = {
    "object": {"composite": 0.95, "without": 0.1, "grey": 0.9},
    "scene": {"composite": 0.95, "without": 0.96, "grey": 0.1},
    "scene_only": {"composite": 0.3, "without": 0.96, "grey": 0.12},
}


@pytest.mark.parametrize(
    ("role", "what", "value", "says"),
    [
        ("object", "grey", 0.1, "only 10% of the objects correctly when they stand alone"),
        ("scene", "grey", 0.9, "The scene model names 90% of the scenes by the object alone"),
        ("scene_only", "grey", 0.9, "The scene-only model names 90% of the scenes by the object alone"),
        ("scene_only", "without", 0.1, "only 10% of the scenes without objects"),
    ],
)
def test_objects_alone_and_the_model_of_scenes_alone_are_premises_too(
    role: str, what: str, value: float, says: str
) -> None:
    assert violations(ALL, 10, 200) == []
    (output,) = violations({**ALL, role: {**ALL[role], what: value}}, 10, 200)
    assert says in output


def test_what_was_not_measured_is_unknown_and_neither_holds_nor_fails() -> None:
    assert unknown(ALL) == []
    for nothing in (math.nan, None):
        bare = {role: {**message, "without": nothing} for role, message in ALL.items()}
        assert violations(bare, 10, 200) == []  # type: ignore[arg-type]
        assert unknown(bare) == [  # type: ignore[arg-type]
            "the object model with scenes alone",
            "the scene model with scenes alone",
            "the scene-only model with scenes alone",
        ]
    assert unknown({"scene_only": {**ALL["scene_only"], "composite": math.nan}}) == []
