"""Guided integrated gradients against theory and against PAIR's own code."""

from __future__ import annotations

import importlib

import networks
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from heatproof import engine
from heatproof.methods.guided_ig import GuidedIG, Walk
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.types import Batch, Model


def in_double(model: Model, batch: Batch) -> tuple[Model, Batch]:
    """Paths that order features by gradient are compared where float noise cannot reorder them."""
    return Model("double", model.network.double(), model.mean, model.std), batch.showing(batch.images.double())


def test_on_a_linear_model_it_is_weight_times_input() -> None:
    model, batch = networks.linear(), networks.batch(3)
    weights = model.network.fc.weight.view(10, 3, 32, 32)[batch.targets]
    found = GuidedIG(steps=20).channels(model, batch)
    assert torch.allclose(found, weights * batch.images, atol=1e-6)


def test_without_leeway_it_is_integrated_gradients() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    straight = GuidedIG(steps=64, max_dist=0.0)(model, batch)
    usual = IntegratedGradients(steps=64)(model, batch)
    assert (straight - usual).abs().max() < 0.03 * usual.abs().max()  # a left sum against Gauss-Legendre


def test_it_nearly_adds_up_to_the_difference() -> None:
    model, batch = networks.small_vit(), networks.batch(3)
    total = GuidedIG(steps=100)(model, batch).sum((1, 2))
    ends = [engine.gradient(model, x, batch.targets)[1] for x in (batch.images, torch.zeros_like(batch.images))]
    difference = ends[0] - ends[1]
    assert (total - difference).abs().max() < 0.05 * difference.abs().max()


@given(
    seed=st.integers(0, 1000),
    fraction=st.sampled_from([0.05, 0.25, 0.5, 1.0]),
    max_dist=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    ties=st.booleans(),
    precision=st.sampled_from([(torch.float64, 1e-9), (torch.float32, 3e-5)]),
)
def test_every_step_reaches_its_goal_inside_the_corridor_the_flattest_first(
    seed: int, fraction: float, max_dist: float, ties: bool, precision: tuple[torch.dtype, float]
) -> None:
    generator, (dtype, tolerance) = torch.Generator().manual_seed(seed), precision
    lengths = torch.rand(3, 40, generator=generator, dtype=dtype)
    lengths[:, :7] = 0  # features that have nowhere to go
    live = lengths > 0
    walk = Walk(lengths, fraction, max_dist)
    for step in range(10):
        before, goal = walk.position.clone(), (step + 1) / 10
        slope = torch.rand(3, 40, generator=generator, dtype=dtype) * 2 - 1
        slope = (slope * 4).round() if ties else slope
        moved = walk.advance(slope, goal)
        mean = (lengths * moved).sum(1) / lengths.sum(1)
        assert torch.allclose(mean, torch.full_like(mean, goal), atol=tolerance)
        assert (moved - before)[live].min() >= -tolerance
        assert (moved - goal).abs()[live].max() <= max_dist + tolerance
        for row in range(3):
            message = (each[row].double() for each in (before, lengths, slope.abs()))
            wanted = by_portions(*message, goal, fraction, max_dist)
            assert torch.allclose(moved[row][live[row]].double(), wanted[live[row]], atol=tolerance)


def by_portions(
    position: Tensor, lengths: Tensor, steepness: Tensor, goal: float, fraction: float, max_dist: float
) -> Tensor:
    """The rule in plain words: the flattest portion of those that can move goes to the top, until the goal is met."""
    position, top = position.clamp(min=max(goal - max_dist, 0)), min(goal + max_dist, 1)
    waiting = (position < top) & (lengths > 0)
    while (gap := float(goal * lengths.sum() - (lengths * position).sum())) > 1e-9 and bool(waiting.any()):
        portion = int(fraction * (len(lengths) - 1)) + 1
        flattest = steepness[waiting].sort().values
        chosen = waiting & (steepness <= flattest[min(portion, len(flattest)) - 1])
        reach = float(((top - position) * lengths)[chosen].sum())
        position[chosen] += min(1.0, gap / reach) * (top - position[chosen])
        waiting &= ~chosen
    return position


@pytest.mark.parametrize(("fraction", "max_dist"), [(0.25, 0.02), (0.5, 1.0), (0.1, 0.2)])
def test_it_is_pairs_guided_ig(monkeypatch: pytest.MonkeyPatch, fraction: float, max_dist: float) -> None:
    saliency = importlib.import_module("saliency.core")
    quantile = np.quantile
    monkeypatch.setattr(  # the library's call is for an older numpy
        np, "quantile", lambda values, share, interpolation: quantile(values, share, method=interpolation)
    )
    model, batch = in_double(networks.small_cnn(), networks.batch(2))

    def slopes(pictures: np.ndarray, call_model_args: int, expected_keys: object) -> dict[str, np.ndarray]:
        images = torch.from_numpy(pictures).permute(0, 3, 1, 2)
        aims = torch.full((len(images),), call_model_args)
        found = engine.gradient(model, images, aims)[0]
        return {"INPUT_OUTPUT_GRADIENTS": found.permute(0, 2, 3, 1).numpy()}

    ours = GuidedIG(steps=30, fraction=fraction, max_dist=max_dist).channels(model, batch)
    for picture, target, mine in zip(batch.images, batch.targets.tolist(), ours, strict=True):
        theirs = saliency.GuidedIG().GetMask(
            picture.permute(1, 2, 0).numpy(),
            slopes,
            target,
            x_steps=30,
            fraction=fraction,
            max_dist=max_dist,
        )
        assert np.abs(mine.permute(1, 2, 0).numpy() - theirs).max() < 1e-9 * np.abs(theirs).max() + 1e-12
