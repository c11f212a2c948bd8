"""Adversarial gradient integration, and the passes and class draws it shares with local attribution."""

from __future__ import annotations

import networks
import pytest
import torch
from torch import nn

from heatproof import engine
from heatproof.errors import BadModel, NotApplicable
from heatproof.methods._support.shared_passes import other_classes, reading, slopes
from heatproof.methods.agi import AGI
from heatproof.types import Model


def test_one_step_on_a_linear_model_is_known() -> None:
    model, batch = networks.linear(), networks.batch(2)
    batch = batch.showing(batch.images * 0.5 + 0.25).aimed(torch.tensor([1, 2]))
    others = other_classes(batch.generators("agi"), batch.targets, 10, 4)
    weights = model.network.fc.weight.detach().view(10, 3, 32, 32)
    answers = engine.forward(model, batch.images).argmax(1)
    expected = torch.zeros_like(batch.images)
    for row in range(2):
        for other in others[row].tolist():
            if other != answers[row]:  # already there: no walk
                expected[row] -= weights[batch.targets[row]] * 0.05 * weights[other].sign()
    found = AGI(classes=4, steps=1).channels(model, batch)
    assert torch.allclose(found, expected, atol=1e-7)


def test_two_slopes_come_from_one_forward() -> None:
    model, batch = networks.small_cnn(), networks.batch(5)
    aims = torch.stack([batch.targets, (batch.targets + 1) % 10], 1)
    (first, second), logits = slopes(model, batch.images, aims, reading(model, "probability"))
    assert torch.equal(first, engine.gradient(model, batch.images, aims[:, 0], "probability")[0])
    assert torch.equal(second, engine.gradient(model, batch.images, aims[:, 1], "probability")[0])
    assert torch.allclose(logits, engine.forward(model, batch.images), atol=1e-5)


def test_other_classes_are_all_different_and_never_the_target() -> None:
    batch = networks.batch(5)
    found = other_classes(batch.generators("agi"), batch.targets, 10, 20)
    assert found.shape == (5, 9)
    for row, target in zip(found.tolist(), batch.targets.tolist(), strict=True):
        assert sorted([*row, target]) == list(range(10))


def test_the_two_paths_share_their_first_step_only() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    anchored, cumulative = (
        [AGI(classes=3, steps=n, path=path)(model, batch) for n in (1, 4)] for path in ("anchored", "cumulative")
    )
    assert torch.equal(anchored[0], cumulative[0])
    assert not torch.equal(anchored[1], cumulative[1])


class OneClass(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((1, 2, 3))[:, None]


def test_a_model_of_one_class_has_nowhere_to_walk() -> None:
    batch = networks.batch(2).aimed(torch.zeros(2, dtype=torch.int64))
    with pytest.raises((NotApplicable, BadModel), match="one number per image"):
        AGI()(Model("one", OneClass(), output="softmax"), batch)
