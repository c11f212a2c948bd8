"""IDGI: linear models, completeness at any number of steps, and the formula written out."""

from __future__ import annotations

import pytest
import torch
from networks import batch, linear, small_cnn, small_vit
from torch import nn

from heatproof.methods.idgi import IDGI
from heatproof.types import Batch, Model


def test_on_a_linear_model_it_shares_the_rise_by_squared_weights() -> None:
    model, shown = linear(), batch(2)
    weights = model.network.fc.weight.detach()[shown.targets].view(-1, 3, 32, 32)
    rise = (weights * shown.images).sum((1, 2, 3), keepdim=True)
    wanted = (rise * weights.square() / weights.square().sum((1, 2, 3), keepdim=True)).sum(1)
    torch.testing.assert_close(IDGI(steps=4)(model, shown), wanted, atol=1e-7, rtol=1e-3)


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("readout", ["logit", "probability"])
def test_complete_at_any_number_of_steps(steps: int, readout: str) -> None:
    shown = batch(2)
    for model in (small_cnn(), small_vit()):
        method = IDGI(steps, readout=readout)  # type: ignore[arg-type]
        gap = method(model, shown).sum((1, 2)).double() - method.total(model, shown)
        assert float(gap.abs().max()) < 1e-5


def test_the_formula_written_out() -> None:
    model, shown = small_cnn(), batch(1)
    target, steps = int(shown.targets[0]), 6
    wanted = torch.zeros_like(shown.images)
    for step in range(steps):
        here = (shown.images * (step / steps)).requires_grad_()
        value = model(here)[0, target]
        (slope,) = torch.autograd.grad(value, here)
        ahead = model(shown.images * ((step + 1) / steps))[0, target]
        wanted += slope.square() / slope.square().sum() * float((ahead - value).detach())
    torch.testing.assert_close(IDGI(steps)(model, shown), wanted.sum(1), atol=1e-7, rtol=1e-3)


class Late(nn.Module):
    """Flat on the first half of the path from black, then a ramp, then flat again."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        ramp = (x.mean((1, 2, 3)) - 0.3).clamp(0, 0.1)
        return torch.stack([ramp, -ramp], 1)


def test_where_there_is_no_gradient_rises_wait_for_one() -> None:
    shown = Batch(torch.full((1, 3, 8, 8), 0.6), torch.zeros(1, dtype=torch.int64), ("plain",))
    for steps in (5, 12, 50):  # one of the points lies on the ramp
        maps = IDGI(steps)(Model("late", Late()), shown)
        assert float(maps.sum()) == pytest.approx(0.1, abs=1e-6)
    flat = shown.showing(torch.full((1, 3, 8, 8), 0.2))
    assert IDGI(4)(Model("late", Late()), flat).eq(0).all()
