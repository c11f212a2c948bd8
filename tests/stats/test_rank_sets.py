"""Rank sets hold the true ranks wherever the decided pairs are right."""

from hypothesis import given
from hypothesis import strategies as st

from heatproof.stats.rank_sets import rank_sets


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
