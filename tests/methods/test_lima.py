"""LIMA: additive games, exhaustive search, diversity by hand."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from closed_forms import drawn, grey, weighted
from networks import batch, small_cnn

from heatproof.attribute import attribute
from heatproof.errors import BadInput
from heatproof.methods.lima import LIMA, Search, diversity
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.occlusion import Occlusion
from heatproof.occlusion.segmenters.grid import Grid

NINE = Occlusion(Constant(), Grid(3))


def test_in_an_additive_game_segments_come_in_the_order_of_what_they_add() -> None:
    weights, shown = drawn(2, 1, 12, 12), grey(3)
    cells = (weights[:1] * shown.images).unfold(2, 4, 4).unfold(3, 4, 4).sum((1, 4, 5)).flatten(1)
    method = LIMA(NINE, effectiveness=0, readout="logit")
    maps = attribute(weighted(weights), shown, method).maps[:, ::4, ::4].flatten(1)
    wanted = 1 - cells.argsort(descending=True).argsort() / 9
    torch.testing.assert_close(maps, wanted)


def test_every_segment_has_a_rank_of_its_own() -> None:
    maps = attribute(small_cnn(), batch(2), LIMA(NINE)).maps
    for one in maps:
        assert one.unique().tolist() == pytest.approx([place / 9 for place in range(1, 10)])


def test_diversity_by_hand() -> None:
    angles = torch.tensor([[0.0, 0.5, 0.2], [0.5, 0.0, 0.4], [0.2, 0.4, 0.0]])
    chosen = torch.tensor([[True, False, False], [True, True, False], [True, True, True], [False, False, False]])
    torch.testing.assert_close(diversity(angles, chosen), torch.tensor([0.0, 1.0, 0.2 + 0.4 + 0.2, 0.0]))


def test_the_first_choice_is_the_best_there_is() -> None:
    worth = drawn(2, 2, 2, seed=4).double()  # a game of three players, by what is visible

    def value(coalitions: torch.Tensor) -> torch.Tensor:
        return torch.stack([worth[tuple(row.long().tolist())] for row in coalitions])

    search = Search(torch.zeros(3, 3))
    while search.waiting:
        asked = search.asks()
        search.learns(asked, value(asked), (0.0, 1.0, 1.0))
    assert sorted(search.order) == [0, 1, 2]

    def first_gain(order: tuple[int, ...]) -> float:
        alone = torch.zeros(1, 3, dtype=torch.bool)
        alone[0, order[0]] = True
        return float(value(alone) - value(~alone))

    assert first_gain(tuple(search.order)) == max(first_gain(order) for order in permutations(range(3)))


def test_weights_below_zero_are_refused() -> None:
    with pytest.raises(BadInput, match="collaboration must be at least 0"):
        LIMA(collaboration=-1)
