"""MFABA: closed forms on a linear model, and where the walk ends."""

from __future__ import annotations

import networks
import pytest
import torch

from heatproof import engine
from heatproof.methods.mfaba import MFABA
from heatproof.types import Batch, Model


def steady() -> tuple[Model, Batch, torch.Tensor]:
    """A linear model that never changes its answer on the way, on pictures far from black and white."""
    model, batch = networks.linear(), networks.batch(3)
    batch = batch.showing(batch.images * 0.5 + 0.25)
    answers = engine.forward(model, batch.images).argmax(1)
    batch = batch.aimed(answers)
    return model, batch, model.network.fc.weight.detach().view(10, 3, 32, 32)[answers]


def test_smooth_steps_on_a_linear_model_add_up_magnitudes() -> None:
    model, batch, weights = steady()
    found = MFABA(steps=2, step_size=1e-4).channels(model, batch)
    assert torch.allclose(found, 2e-4 * weights.abs(), rtol=2e-3, atol=1e-9)


def test_sharp_steps_on_a_linear_model_add_up_squares() -> None:
    model, batch, weights = steady()
    found = MFABA(steps=2, step_size=1e-5, walk="sharp").channels(model, batch)
    expected = 2e-3 * weights**2 / weights.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    assert torch.allclose(found, expected, rtol=2e-2, atol=1e-7)


def test_both_rules_agree_where_the_gradient_is_constant() -> None:
    model, batch, _ = steady()
    left = MFABA(steps=3, step_size=1e-4)(model, batch)
    trapezoid = MFABA(steps=3, step_size=1e-4, rule="trapezoid")(model, batch)
    assert torch.allclose(left, trapezoid, atol=1e-8)


def test_published_code_adds_each_gradient_to_those_before() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    batch = batch.aimed(engine.forward(model, batch.images).argmax(1))
    one, four = (MFABA(steps=n, step_size=1e-6, variant="lmb")(model, batch).sum() for n in (1, 4))
    assert float(four / one) == pytest.approx(1 + 2 + 3 + 4, rel=0.05)


def test_the_walk_ends_where_the_answer_changes() -> None:
    model, batch = networks.small_vit(), networks.batch(3)
    answers = engine.forward(model, batch.images).argmax(1)
    wrong = (answers + 1) % networks.CLASSES
    one_step = MFABA(steps=1)(model, batch.aimed(wrong))
    assert torch.equal(MFABA(steps=30)(model, batch.aimed(wrong)), one_step)
    assert (MFABA(steps=30)(model, batch.aimed(answers)) >= 0).all()


def test_everyone_takes_the_first_step_also_where_the_answer_is_another_from_the_start() -> None:
    model, batch, _ = steady()
    others = (batch.targets + 1) % networks.CLASSES
    assert bool((MFABA(steps=5)(model, batch.aimed(others)).flatten(1).amax(1) > 0).all())


@pytest.mark.parametrize("walk", ["smooth", "sharp"])
def test_no_step_leaves_the_colours_there_are(walk: str) -> None:
    """A pixel at the edge cannot move further out, so it has no share."""
    model, batch, weights = steady()
    edge = (weights < 0).float()  # down the slope is up for these, which are white already; the others are black
    found = MFABA(steps=2, step_size=1e-3, walk=walk).channels(model, batch.showing(edge))  # type: ignore[arg-type]
    assert float(found.abs().max()) == 0.0


def test_smooth_steps_stay_within_epsilon() -> None:
    model, batch, weights = steady()
    found = MFABA(steps=3, step_size=1e-3, epsilon=1e-3).channels(model, batch)
    assert torch.allclose(found, 1e-3 * weights.abs(), rtol=2e-3, atol=1e-7)


def test_those_who_walk_on_keep_their_own_bounds_when_others_leave() -> None:
    model, batch, weights = steady()
    targets = batch.targets.clone()
    targets[0] = (targets[0] + 1) % networks.CLASSES  # leaves after the first step
    weights[0] = model.network.fc.weight.detach().view(10, 3, 32, 32)[targets[0]]
    found = MFABA(steps=3, step_size=1e-3, epsilon=2e-3).channels(model, batch.aimed(targets))
    lengths = torch.tensor([1e-3, 2e-3, 2e-3]).view(-1, 1, 1, 1)
    assert torch.allclose(found, lengths * weights.abs(), rtol=2e-3, atol=1e-7)
