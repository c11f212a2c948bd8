"""Marks by the tests of a page: what each of them claims, and that none claims more than the tests hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.stats.marks import MARKS, agreement, mark_of
from heatproof.stats.page import PairTests, compare_means

LEVELS = {"first": 0.9, "second": 0.6, "third": 0.6, "weak": 0.1, "edges": 0.3, "random": 0.0}
BLIND = ("edges", "random")
OURS = ("first", "second", "third", "weak")


def page_of(levels: dict[str, float] = LEVELS, images: int = 40, noise: float = 0.08) -> PairTests:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({name: level + rng.normal(0, noise, images) for name, level in levels.items()})
    return compare_means(table, controls=[name for name in levels if name in BLIND], resamples=400)


def test_every_mark_means_what_it_says() -> None:
    tests = page_of()
    marks = {method: mark_of(method, tests, OURS, BLIND) for method in OURS}
    assert marks == {"first": "best", "second": "behind", "third": "behind", "weak": "beaten"}


def test_where_nothing_beats_two_of_them_both_are_good() -> None:
    levels = {**LEVELS, "first": 0.6}
    marks = [mark_of(method, page_of(levels), OURS, BLIND) for method in ("first", "second", "third")]
    assert marks == ["good", "good", "good"]


def test_a_method_level_with_a_blind_map_is_open_however_many_methods_it_beats() -> None:
    levels = {**LEVELS, "edges": 0.9}
    assert mark_of("first", page_of(levels), OURS, BLIND) == "open"


def test_without_a_yardstick_blind_maps_do_not_count() -> None:
    levels = {**LEVELS, "edges": 2.0}
    tests = page_of(levels)
    assert mark_of("first", tests, OURS, BLIND) == "beaten"
    assert mark_of("first", tests, OURS, BLIND, yardstick=False) == "best"
    assert mark_of("weak", tests, OURS, BLIND, yardstick=False) == "behind"


def test_too_few_pictures_and_no_scores_are_open() -> None:
    assert mark_of("first", page_of(images=3), OURS, BLIND) == "open"
    assert mark_of("absent", page_of(), (*OURS, "absent"), BLIND) == "open"
    assert mark_of("first", None, OURS, BLIND) == "open"


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_never_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(30, 6)), columns=list(LEVELS))
    tests = compare_means(table, controls=BLIND, resamples=400)
    assert {mark_of(method, tests, OURS, BLIND) for method in OURS} == {"open"}


@given(st.lists(st.sampled_from(MARKS), min_size=1, max_size=9))
def test_more_than_half_of_the_comparisons_reach_what_is_shown_and_no_better_mark_is_reached_by_as_many(
    marks: list,
) -> None:
    found = agreement(marks)
    reached = {mark: sum(MARKS.index(one) <= at for one in marks) for at, mark in enumerate(MARKS)}
    assert found.reached == reached[found.mark] > len(marks) / 2
    assert all(reached[better] <= len(marks) / 2 for better in MARKS[: MARKS.index(found.mark)])
    assert found.unanimous == (found.reached == found.of == len(marks))
