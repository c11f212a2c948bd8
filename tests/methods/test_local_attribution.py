"""Local attribution: closed form on a linear model."""

from __future__ import annotations

import networks
import torch

from heatproof.methods._support.shared_passes import other_classes
from heatproof.methods.local_attribution import LocalAttribution


def test_on_a_linear_model_it_is_known() -> None:
    model, batch = networks.linear(), networks.batch(2)
    batch = batch.showing(batch.images * 0.9)  # no step leaves [0, 1]
    others = other_classes(batch.generators("local_attribution"), batch.targets, 10, 3)
    weights = model.network.fc.weight.detach().view(10, 3, 32, 32)
    own = weights[batch.targets]
    direction = -own.sign() + weights[others].sign().sum(1)
    expected = -5 * own * batch.images / 20 * direction
    found = LocalAttribution(classes=4, steps=5).channels(model, batch)
    assert torch.allclose(found, expected, atol=1e-6)


def test_black_pixels_get_nothing() -> None:
    model, batch = networks.small_cnn(), networks.batch(2)
    images = batch.images.clone()
    images[:, :, :8] = 0
    found = LocalAttribution(classes=3, steps=3)(model, batch.showing(images))
    assert (found[:, :8] == 0).all()
    assert found[:, 8:].abs().max() > 0


def test_more_walks_than_classes_are_cut_to_what_there_is() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    all_classes = LocalAttribution(classes=10, steps=2)(model, batch)
    assert torch.equal(LocalAttribution(classes=500, steps=2)(model, batch), all_classes)
