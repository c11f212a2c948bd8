"""Sobol indices and HSIC: games whose indices follow by hand, and linear models."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from closed_forms import drawn, grey, weighted
from networks import batch, small_cnn
from torch import Tensor

from heatproof.attribute import attribute
from heatproof.errors import BadInput
from heatproof.methods.hsic import HSIC, dependence
from heatproof.methods.sobol import Sobol, designs, total_indices
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.occlusion import Occlusion
from heatproof.occlusion.segmenters.grid import Grid

BOTH = torch.tensor(list(product([0.0, 1.0], repeat=2)), dtype=torch.float64)


def exact_indices(game: Tensor) -> Tensor:
    """The estimate from all pairs of coalitions of two players; `game` has the values of 00, 01, 10, 11."""
    first, second = (part.flatten(0, 1) for part in (BOTH[:, None].expand(4, 4, 2), BOTH[None].expand(4, 4, 2)))
    swapped = [first.clone() for _ in range(2)]
    for player, rows in enumerate(swapped):
        rows[:, player] = second[:, player]
    points = torch.cat([first, *swapped]).long()
    values = game[2 * points[:, 0] + points[:, 1]]
    return total_indices(values, 16) * 16 / 15  # the estimate's variance is that of a sample


def test_total_indices_by_hand() -> None:
    a, b = 3.0, -1.0
    additive = torch.tensor([0.0, b, a, a + b])
    torch.testing.assert_close(exact_indices(additive), torch.tensor([0.9, 0.1], dtype=torch.float64))
    both = torch.tensor([0.0, 0.0, 0.0, 1.0])
    torch.testing.assert_close(exact_indices(both), torch.full((2,), 2 / 3, dtype=torch.float64))
    either = torch.tensor([0.0, 1.0, 1.0, 0.0])
    torch.testing.assert_close(exact_indices(either), torch.ones(2, dtype=torch.float64))
    absent = torch.tensor([0.0, 0.0, 5.0, 5.0])
    torch.testing.assert_close(exact_indices(absent), torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert exact_indices(torch.full((4,), 7.0)).eq(0).all()


def test_dependence_by_hand() -> None:
    a, b = 3.0, -1.0
    additive = BOTH @ torch.tensor([a, b], dtype=torch.float64)
    torch.testing.assert_close(dependence(BOTH, additive, "linear"), torch.tensor([a, b]).double().square() / 8)
    either = torch.tensor([0.0, 1.0, 1.0, 0.0])
    for kernel in ("linear", "rbf"):
        assert float(dependence(BOTH, either, kernel).max()) < 1e-12  # neither player does anything alone
        assert dependence(BOTH, torch.ones(4), kernel).eq(0).all()
    first, second = dependence(BOTH, torch.tensor([0.0, 0.0, 4.0, 4.0]), "rbf")
    assert float(first) > 0.05
    assert float(second) < 1e-12


def test_dependence_is_the_trace_of_centred_kernels() -> None:
    coalitions = drawn(40, 6) > 0
    values = drawn(40, seed=1).double()
    centre = torch.eye(40, dtype=torch.float64) - 1 / 40
    apart = (values[:, None] - values).abs()
    width = apart[apart > 0].median()
    answers = torch.exp(-(apart**2) / (2 * width**2))
    for segment in range(6):
        z = coalitions[:, segment].double()
        kernel = 1 + (0.5 - (z[:, None] - z).square())
        wanted = (centre @ kernel @ centre @ answers).trace() / 40**2
        assert float(dependence(coalitions, values, "rbf")[segment]) == pytest.approx(float(wanted), rel=1e-9)


def test_a_design_swaps_one_column_at_a_time() -> None:
    points = designs(8, 5, seed=3).view(6, 8, 5)
    for column in range(5):
        changed = (points[1 + column] != points[0]).any(0)
        assert changed.tolist() == [column == other for other in range(5)]
    assert not torch.equal(points, designs(8, 5, seed=4).view(6, 8, 5))


@pytest.mark.parametrize("masks", ["soft", "binary"])
def test_sobol_of_a_linear_model_is_the_share_of_squared_contributions(masks: str) -> None:
    weights, shown = drawn(1, 1, 12, 12), grey(2)
    cells = (weights * shown.images).unfold(2, 4, 4).unfold(3, 4, 4).sum((1, 4, 5)).square()
    wanted = cells / cells.sum((1, 2), keepdim=True)
    maps = attribute(weighted(weights), shown, Sobol(samples=512, cells=3, masks=masks)).maps  # type: ignore[arg-type]
    torch.testing.assert_close(maps[:, 0, 0], wanted[:, 0, 0], atol=0.03, rtol=0.2)
    torch.testing.assert_close(maps[:, 11, 11], wanted[:, 2, 2], atol=0.03, rtol=0.2)


def test_the_estimate_written_out() -> None:
    """One cell at a time is drawn again; half the mean squared change of the answer, as a share of its variance."""
    model, shown, cells, count = small_cnn(), batch(1), 3, 8
    labels = Grid(cells)(shown.images)[0]
    points = designs(count, cells**2, shown.seeds("sobol")[0])

    def answer(visible: Tensor) -> float:
        return float(model(shown.images * visible[labels])[0, int(shown.targets[0])].detach())

    base = [answer(point) for point in points[:count]]
    mean = sum(base) / count
    variance = sum((value - mean) ** 2 for value in base) / (count - 1)
    maps = Sobol(samples=count, cells=cells)(model, shown)
    for cell in range(cells**2):
        again = [answer(point) for point in points[count * (1 + cell) : count * (2 + cell)]]
        wanted = sum((one - other) ** 2 for one, other in zip(base, again, strict=True)) / (2 * count) / variance
        row, column = divmod(cell, cells)
        at = [0, 15, 31]  # the corners, and the middle between two points of the interpolation
        if row != 1 and column != 1:
            assert float(maps[0, at[row], at[column]]) == pytest.approx(wanted, rel=1e-3)


def test_hsic_of_a_linear_model_orders_cells_by_what_they_add() -> None:
    weights, shown = drawn(1, 1, 12, 12), grey(2)
    cells = (weights * shown.images).unfold(2, 4, 4).unfold(3, 4, 4).sum((1, 4, 5)).abs()
    method = HSIC(Occlusion(Constant(), Grid(3)), samples=2000, kernel="linear")
    maps = attribute(weighted(weights), shown, method).maps[:, ::4, ::4]
    torch.testing.assert_close(maps, cells.square() / 8, atol=0.05 * float(cells.square().max()) / 8, rtol=0.2)


def test_what_makes_no_design_is_refused() -> None:
    with pytest.raises(BadInput, match="power of 2"):
        Sobol(samples=20)
    with pytest.raises(BadInput, match="at most 100 per side"):
        Sobol(cells=101)
