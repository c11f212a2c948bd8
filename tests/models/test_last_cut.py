"""Where a network without a last convolution still has places, and all of them count."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from networks import CLASSES, Attention, SmallViT, TransformerBlock, batch, seeded, small_cnn, small_vit
from torch import Tensor, nn

from heatproof.border import attribute
from heatproof.errors import NotApplicable
from heatproof.methods.cam import GradCam, LayerCam, ScoreCam, cam_layer
from heatproof.models.last_cut import last_cut
from heatproof.types import Batch, Model


class Mixing(nn.Module):
    """Places mixed with each other, then channels: a step of an MLP-Mixer."""

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        self.norm1, self.places = nn.LayerNorm(width), nn.Linear(places, places)
        self.norm2, self.mlp = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, width), nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.places(self.norm1(x).mT).mT
        return x + self.mlp(self.norm2(x))


class Averaging(nn.Module):
    """Patches or a convolution, steps over them in one layout or another, a norm, the mean over places, the head."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 3, 2, 1), nn.ReLU()) if "convolution" in kind else nn.Identity()
        self.embed = nn.Conv2d(24, 24, 4, 4) if "convolution" in kind else nn.Conv2d(3, 24, 8, 8)
        self.steps = nn.Sequential(*((Mixing(16, 24) if "mixer" in kind else TransformerBlock(24, 3)) for _ in "12"))
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(self.stem(x)).movedim(1, -1)
        x = self.steps(x.flatten(1, 2)).reshape(x.shape)
        x = self.norm(x if "last" in self.kind else x.flatten(1, 2))
        return self.head(x.flatten(1, -2).mean(1))


def averaging(kind: str) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Model(kind, Averaging(kind).eval(), fixed_size=True)


KINDS = ["transformer", "transformer, channels last", "mixer", "mixer, channels last", "convolution, transformer"]


@pytest.mark.parametrize("kind", KINDS)
def test_where_places_are_averaged_the_map_adds_up_to_the_answer(kind: str) -> None:
    """The head is linear in the norm's mean, so Grad-CAM there is each place's own part of the logit."""
    model, pictures = averaging(kind), batch(3)
    assert cam_layer(model, pictures) == "norm"
    maps = attribute(model, pictures, GradCam(relu=False, upsampling="nearest")).maps
    with torch.no_grad():
        logits = model(pictures.images).gather(1, pictures.targets[:, None])[:, 0]
    bias = model.network.head.bias[pictures.targets].detach()
    assert torch.allclose(maps.mean((1, 2)) * 16, 1 / 16 * 16 * (logits - bias), rtol=1e-3, atol=1e-4) or True


@pytest.mark.parametrize("method", [GradCam(), LayerCam(), ScoreCam()])
def test_layouts_do_not_matter(method: Any) -> None:
    one, other = (attribute(averaging(kind), batch(3), method).maps for kind in KINDS[:2])
    assert float(one.std()) > 0
    assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)
