"""What is told when there is no finite map: whose map, and of which image."""

from __future__ import annotations

import pytest
import torch
from networks import batch
from torch import Tensor, nn

from heatproof.border import attribute
from heatproof.errors import BadModel, BadShape
from heatproof.methods.gradients import Saliency
from heatproof.parsing import parse
from heatproof.types import Batch, Model


class Breaks(nn.Module):
    """No answer for pictures with a white corner."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.mean((2, 3))).masked_fill((x[:, 0, 0, 0] == 1)[:, None], float("nan"))


class Steep(nn.Module):
    """A finite answer with an infinite slope where a corner is black."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3)) + x[:, :, 0, 0].sqrt()


def white_corners(*rows: int) -> Batch:
    pictures = batch(4)
    images = pictures.images.clamp(max=0.9)
    images[list(rows), :, 0, 0] = 1
    return pictures.showing(images)


@pytest.mark.parametrize(
    "label", ["saliency", "lime(samples=10)", "deep_lift", "agi(classes=2)", "inverted(method=fast_ig)"]
)
def test_a_network_without_an_answer_is_told_with_method_and_image(label: str) -> None:
    model = Model("breaks", Breaks())
    with pytest.raises(BadModel, match="on 2 of these 4 images as they are, first on 'picture1'") as caught:
        attribute(model, white_corners(1, 3), parse("method", label))
    assert str(caught.value).startswith(f"{label}: model 'breaks' must answer with finite logits")


def whitened(model: Model, images: Batch) -> Tensor:
    """A method that breaks the network by what it makes of the images."""
    return Saliency()(model, images.showing(torch.ones_like(images.images)))


def test_images_that_are_not_to_blame_are_not_named() -> None:
    with pytest.raises(BadModel, match=r"^whitened: .* finite logits") as caught:
        attribute(Model("breaks", Breaks()), white_corners(), whitened)
    assert "picture" not in str(caught.value).replace("pictures it was shown", "")
    with pytest.raises(BadModel, match=r"^saliency: model 'pairs' must") as caught:
        attribute(Model("pairs", nn.Flatten(0, 1)), batch(2), Saliency())
    assert "as they are" not in str(caught.value)


def test_a_map_that_is_not_finite_is_told_by_the_methods_label() -> None:
    pictures = batch(3)
    pictures.images[2, :, 0, 0] = 0
    told = r"maps of saliency\(signed=True\) must be finite, got .* 1 of 3 images, first on 'picture2'"
    with pytest.raises(BadShape, match=told):
        attribute(Model("steep", Steep()), pictures, Saliency(signed=True))


def test_asking_which_image_it_was_leaves_the_network_alone() -> None:
    model = Model("breaks", nn.Sequential(nn.BatchNorm2d(3), Breaks(), nn.Dropout()))
    model.network[0].eps = 0.0  # an identity, so that white stays white
    model.network.train()
    with pytest.raises(BadModel, match="first on 'picture0'"):
        attribute(model, white_corners(0), Saliency())
    assert all(module.training for module in model.network.modules())
    assert torch.equal(model.network[0].running_mean, torch.zeros(3))
