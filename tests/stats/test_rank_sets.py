"""Rank sets hold the true ranks wherever the decided pairs are right."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heatproof.stats.rank_sets import rank_sets, rank_sets_of_intervals


def test_by_hand():
    assert rank_sets(list("abc"), {("a", "c")}) == {"a": (1, 2), "b": (1, 3), "c": (2, 3)}
    assert rank_sets(list("ab"), {("a", "b"), ("a", "z")}) == {"a": (1, 1), "b": (2, 2)}
    assert rank_sets(["a"], set()) == {"a": (1, 1)}


@given(st.permutations(range(6)), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_right_decisions_never_exclude_a_true_rank(order, message):
    names = [f"{i}" for i in range(6)]
    place = {names[method]: rank for rank, method in enumerate(order, 1)}
    beats = {(names[a], names[b]) for a, b in message if place[names[a]] < place[names[b]]}
    for method, (best, worst) in rank_sets(names, beats).items():
        assert best <= place[method] <= worst


def test_intervals_give_the_same_as_decisions():
    low = np.array([[np.nan, 0.1, -1], [-0.5, np.nan, -0.2], [-1, -0.4, np.nan]])
    high = -low.T
    assert rank_sets_of_intervals(low, high) == list(rank_sets(list("abc"), {("a", "b")}).values())
