"""Boundary-based integrated gradients: the boundary is found, and the map is the integral from it."""

from __future__ import annotations

import networks
import torch

from heatproof import engine
from heatproof.methods.boundary_ig import BoundaryIG


def test_the_baseline_lies_just_beyond_the_boundary() -> None:
    model, batch = networks.small_vit(), networks.batch(4)
    own = engine.forward(model, batch.images).argmax(1)
    found = BoundaryIG().boundary(model, batch)
    beyond = engine.forward(model, found).argmax(1)
    back = engine.forward(model, batch.images + 0.99 * (found - batch.images)).argmax(1)
    assert (beyond != own).all()
    assert (back == own).all()


def test_on_a_linear_model_it_is_weight_times_the_way_from_the_boundary() -> None:
    model, batch = networks.linear(), networks.batch(3)
    method = BoundaryIG()
    weights = model.network.fc.weight.view(10, 3, 32, 32)[batch.targets]
    expected = weights * (batch.images - method.boundary(model, batch))
    assert torch.allclose(method.channels(model, batch), expected, atol=1e-7)


def test_an_attack_that_fails_falls_back_to_its_last_point() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    model.network.head.bias.data[3] = 100.0  # nothing within reach changes this answer
    found = BoundaryIG(attack_steps=5, bisections=3).boundary(model, batch)
    moved = (found - batch.images).abs()
    inside = (batch.images > 0.05) & (batch.images < 0.95)
    assert moved.max() <= 5 / 255 + 1e-6
    assert float((moved[inside] > 4.9 / 255).float().mean()) > 0.7  # most gradients keep their sign all the way


def test_the_published_variant_walks_all_its_steps() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    found = BoundaryIG(variant="lmb", step_size=0.001, attack_steps=10).boundary(model, batch)
    assert 0 < (found - batch.images).abs().max() <= 0.01 + 1e-6
