"""R-OMS: an area between the answer to nothing and the answer to everything, and who moves it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from networks import batch, linear, small_cnn
from torch import nn

from heatproof.audit.model_scope import CHOICES, RandomOrders, scope, scopes, shape, spread, summary
from heatproof.errors import BadInput
from heatproof.occlusion.flip_order import area, random_curves, removals
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.occlusion.segmenters.squares import Squares
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


def test_a_table_of_setups_has_intervals() -> None:
    table = scopes([small_cnn(), linear()], batch(4), [Mean(), Constant()], [Grid(2), Grid(4), Squares(16)])
    assert len(table) == 2 * 2 * 3 * 4
    found = summary(table)
    assert len(found) == 12
    assert (found["r_oms_low"] <= found["r_oms"]).all()
    assert (found["r_oms"] <= found["r_oms_high"]).all()
    assert set(found["number"]) == {4, 16}
    moved = spread(table).set_index("choice")
    assert list(moved.index) == list(CHOICES)
    assert moved.loc["model", "groups"] == 6
    assert moved.loc["shape", "groups"] == 4  # both shapes exist with 16 segments only
    assert (moved["low"] <= moved["high"]).all()


def row(model: str, imputer: str, image: str, value: float) -> dict[str, object]:
    same: dict[str, object] = {"shape": "grid", "number": 25, "segments": 25}
    return {"model": model, "imputer": imputer, "image": image, "r_oms": value, "nr_oms": value, **same}


def test_spread_is_the_range_over_one_choice() -> None:
    rows = [
        row(m, i, image, v)
        for m, i, v in [("a", "x", 0.1), ("a", "y", 0.5), ("b", "x", 0.2), ("b", "y", 0.3)]
        for image in ("one", "two")
    ]
    found = spread(pd.DataFrame(rows)).set_index("choice")
    assert found.loc["imputer", "mean"] == pytest.approx((0.4 + 0.1) / 2)
    assert found.loc["imputer", "max"] == pytest.approx(0.4)
    assert found.loc["imputer", "iqr"] == pytest.approx((0.4 - 0.1) / 2)  # of two, half of what is between them
    assert found.loc["model", "mean"] == pytest.approx((0.1 + 0.2) / 2)
    assert found.loc["number", "groups"] == 0
    with pytest.raises(BadInput, match="same images"):
        spread(pd.DataFrame(rows[1:]))
    with pytest.raises(BadInput, match="columns"):
        spread(pd.DataFrame(rows).drop(columns="imputer"))


def test_a_choice_that_moves_nothing_has_the_range_that_chance_gives() -> None:
    rng = np.random.default_rng(0)
    noise = [row("m", i, f"{n}", float(rng.normal())) for i in ("x", "y", "z") for n in range(40)]
    found = spread(pd.DataFrame(noise)).set_index("choice").loc["imputer"]
    assert found["low"] > 0  # so the interval alone would call it an effect
    assert found["chance"] == pytest.approx(1.69 / 40**0.5, rel=0.15)  # the mean range of three normal draws
    assert found["low"] < found["chance"] < found["high"]
    half = spread(pd.DataFrame(noise), level=0.5).set_index("choice").loc["imputer"]
    assert found["low"] < half["low"] < half["high"] < found["high"]
    moved = [{**one, "r_oms": one["r_oms"] + (one["imputer"] == "x")} for one in noise]  # type: ignore[operator]
    again = spread(pd.DataFrame(moved)).set_index("choice").loc["imputer"]
    assert again["low"] > again["chance"]


def test_segmenters_that_differ_in_more_than_their_number_are_other_shapes() -> None:
    assert shape(Grid(7)) == shape(Grid(2)) == "grid"
    assert shape(Slic(100)) == "slic"
    assert shape(Slic(100, compactness=0.1)) == shape(Slic(compactness=0.1)) == "slic(compactness=0.1)"
    assert shape(Slic(100, space="volume")) == "slic(space=volume)"
    shapes = [Slic(9), Slic(9, compactness=10.0), Slic(9, space="volume")]
    table = scopes([small_cnn()], batch(2), [Mean()], shapes)
    assert len(summary(table)) == 3
    assert spread(table).set_index("choice").loc["shape", "groups"] == 1


def test_doubled_rows_are_refused() -> None:
    table = scopes([small_cnn()], batch(2), [Mean()], [Grid(2)])
    for read in (summary, spread):
        with pytest.raises(BadInput, match="one row per setup and image, got several of model"):
            read(pd.concat([table, table]))
    with pytest.raises(BadInput, match="segmenters must have different names"):
        scopes([small_cnn()], batch(2), [Mean()], [Grid(2), Grid(2)])


def test_an_r_oms_is_the_mean_of_five_orders() -> None:
    model, shown = small_cnn(), batch(1)
    game = game_of(model, shown, BLACK)
    orders = random_curves(game, removals(game.counts, "linear", 21), 5)
    assert len({tuple(curve.y[0].tolist()) for curve in orders}) == 5
    torch.testing.assert_close(scope(model, shown, BLACK)[0], torch.stack([area(one) for one in orders]).mean(0))


def test_orders_must_be_positive() -> None:
    with pytest.raises(BadInput, match="orders"):
        RandomOrders(0)
