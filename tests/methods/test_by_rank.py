"""Values of any rank are those that sorting finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heatproof.methods._support.smallest_k import Counted, Sorted, by_rank

FLOATS = st.floats(0, width=32, allow_nan=False) | st.sampled_from([0.0, 1.0, float(np.finfo(np.float32).max)])


@st.composite
def tables(draw: st.DrawFn) -> list[list[float]]:
    columns = draw(st.integers(1, 40))
    return draw(st.lists(st.lists(FLOATS, min_size=columns, max_size=columns), min_size=1, max_size=4))


@pytest.mark.parametrize("ready", [Counted, Sorted])
@given(rows=tables())
def test_every_rank_is_the_one_of_a_sort(ready: type[Counted | Sorted], rows: list[list[float]]) -> None:
    values = torch.tensor(rows, dtype=torch.float32)
    ordered, ask = values.sort(1).values, ready(values)
    for rank in range(1, values.shape[1] + 1):
        wanted = ordered[:, rank - 1 : rank]
        bound, number = ask(np.full(len(rows), rank))
        assert bound.tolist() == wanted[:, 0].tolist()
        assert number.tolist() == (values <= wanted).sum(1).tolist()


def test_rows_may_ask_for_different_ranks_of_many_values() -> None:
    values = torch.randn(3, 5000, generator=torch.Generator().manual_seed(0)).abs()
    kept, ordered, ranks = values.clone(), values.sort(1).values, np.array([1, 2500, 5000])
    for each in (values, values.double()):
        bound, number = by_rank(each)(ranks)
        assert bound.tolist() == ordered[range(3), ranks - 1].tolist()
        assert number.tolist() == ranks.tolist()
    assert torch.equal(values, kept)
