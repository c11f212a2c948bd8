"""R-OMS: an area between the answer to nothing and the answer to everything, and who moves it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from networks import batch, small_cnn
from torch import nn

from heatproof.audit.model_scope import RandomOrders, scope
from heatproof.errors import BadInput
from heatproof.occlusion.flip_order import area, random_curves, removals
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.types import Model

BLACK = Occlusion(Constant(), Grid(3))


class Stubborn(nn.Module):
    """Answers the same whatever it sees."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.tensor([2.0, 1.0, 0.0]).expand(len(images), -1)


def test_a_model_that_ignores_its_input_is_never_out_of_scope() -> None:
    shown = batch(2)
    expected = torch.tensor([2.0, 1.0, 0.0]).softmax(0).double()
    values, curve = scope(Model("stubborn", Stubborn()), shown, Occlusion())
    torch.testing.assert_close(values, expected[shown.targets], atol=1e-6, rtol=0)
    torch.testing.assert_close(curve.y[0], expected[0].expand(41), atol=1e-6, rtol=0)
    anyone, _ = scope(Model("stubborn", Stubborn()), shown, Occlusion(), "any")
    torch.testing.assert_close(anyone, expected[0].expand(2), atol=1e-6, rtol=0)


def test_nr_oms_is_never_below_r_oms() -> None:
    model, shown = small_cnn(), batch(3)
    assert bool((scope(model, shown, Occlusion(), "any")[0] >= scope(model, shown, Occlusion())[0]).all())


def test_more_orders_agree_better() -> None:
    model, shown = small_cnn(), batch(1)

    def apart(orders: int) -> float:
        how = RandomOrders(orders)
        return float(torch.cat([scope(model, replace(shown, seed=s), BLACK, how=how)[0] for s in range(8)]).std())

    assert apart(16) < apart(1)


def test_both_scopes_and_all_methods_share_one_set_of_passes() -> None:
    model, shown = small_cnn(), batch(2)
    scope(model, shown, Occlusion())
    paid = game_of(model, shown, Occlusion()).evaluated
    scope(model, shown, Occlusion(), "any")
    assert game_of(model, shown, Occlusion()).evaluated == paid


def test_an_r_oms_is_the_mean_of_five_orders() -> None:
    model, shown = small_cnn(), batch(1)
    game = game_of(model, shown, BLACK)
    orders = random_curves(game, removals(game.counts, "linear", 21), 5)
    assert len({tuple(curve.y[0].tolist()) for curve in orders}) == 5
    torch.testing.assert_close(scope(model, shown, BLACK)[0], torch.stack([area(one) for one in orders]).mean(0))


def test_orders_must_be_positive() -> None:
    with pytest.raises(BadInput, match="orders"):
        RandomOrders(0)
