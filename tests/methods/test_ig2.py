"""IG2: a straight path on a linear model, references of other classes, networks without a last linear layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from networks import batch, linear, pictures, small_cnn, small_resnet, small_vit
from torch import nn

from heatproof.errors import NotApplicable
from heatproof.methods._support.baselines import blurred
from heatproof.methods._support.representation import representation_layer, representations
from heatproof.methods.ig2 import IG2, references
from heatproof.types import Batch, Model


def test_on_a_linear_model_the_path_is_straight() -> None:
    """The last layer is given the picture itself, so every step leads straight to the reference."""
    model, shown = linear(), batch(2)
    shown = shown.showing(0.3 + 0.4 * shown.images)  # no value leaves [0, 1] on the way
    weights = model.network.fc.weight.detach()[shown.targets].view(-1, 3, 32, 32)
    way = shown.images - blurred(shown.images)
    unit = way / way.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    wanted = 32 / 224 * (unit * weights).sum(1)
    torch.testing.assert_close(IG2(steps=5)(model, shown), wanted, atol=1e-6, rtol=1e-3)


def test_adds_up_to_the_rise_from_the_end_of_the_path() -> None:
    model, shown = small_cnn(), batch(2)
    fine, finer = (IG2(steps=steps)(model, shown).sum((1, 2)) for steps in (20, 60))
    assert float((fine - finer).abs().max()) < 0.05 * float(finer.abs().max())


def test_the_representation_is_what_the_last_linear_layer_is_given() -> None:
    shown = pictures(2)
    assert representation_layer(small_cnn(), shown) == "head.3:input"
    assert representation_layer(small_resnet(), shown) == "fc:input"
    assert representation_layer(small_vit(), shown) == "head:input"
    convolution = Model("conv", nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()))
    assert representation_layer(convolution, shown) is None
    torch.testing.assert_close(representations(convolution, shown, None), convolution(shown))
    assert IG2(steps=2)(convolution, batch(2).aimed(torch.tensor([0, 1]))).abs().max() > 0


@dataclass(frozen=True)
class Album:
    """A data set in memory."""

    images: torch.Tensor
    name: ClassVar[str] = "album"

    def __len__(self) -> int:
        return len(self.images)

    def ids(self) -> tuple[str, ...]:
        return tuple(f"album{place}" for place in range(len(self)))

    def batch(self, indices: list[int]) -> Batch:
        ids = tuple(self.ids()[place] for place in indices)
        return Batch(self.images[indices], torch.zeros(len(indices), dtype=torch.int64), ids)

    def digest(self, indices: list[int]) -> str:
        return ""


class Brightness(nn.Module):
    """Dark or bright."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        level = 10 * (x.mean((1, 2, 3)) - 0.5)
        return torch.stack([-level, level], 1)


def test_references_are_pictures_of_another_class() -> None:
    model = Model("brightness", Brightness())
    levels = torch.tensor([0.1, 0.2, 0.8, 0.9]).view(-1, 1, 1, 1)
    album = Album(levels.expand(4, 3, 32, 32).clone())
    shown = batch(4).aimed(torch.tensor([0, 1, 0, 1]))
    for pictures_ in references(album, model, shown, draws=3):  # type: ignore[arg-type]
        assert (pictures_.mean((1, 2, 3)) > 0.5).tolist() == [True, False, True, False]
    with pytest.raises(NotApplicable, match="takes all 2 of the background data set for class 0"):
        next(references(Album(album.images[:2]), model, shown, draws=1))  # type: ignore[arg-type]
