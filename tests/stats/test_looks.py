"""Looks: fixed beforehand, and their shares of alpha never exceed the whole."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.errors import BadInput
from heatproof.stats.looks import look_steps, share


@given(st.integers(1, 5000))
def test_looks_rise_to_the_last_step_by_half_at_most_each(total):
    steps = look_steps(total)
    assert steps[0] == 1
    assert steps[-1] == total
    assert all(a < b <= -(-3 * a // 2) for a, b in pairwise(steps))
    assert look_steps(10_000)[: len(steps) - 1] == steps[:-1]  # a longer run has the same looks, and more


def test_the_shares_of_all_looks_add_up_to_one():
    spent = [share(number) for number in range(1, 2001)]
    assert min(spent) > 0
    assert 0.999 < sum(spent) < 1
    assert all(a >= b for a, b in pairwise(spent))


def test_refuses():
    with pytest.raises(BadInput, match="at least one step"):
        look_steps(0)
    with pytest.raises(BadInput, match="numbered from 1"):
        share(0)
