"""Where a network without a last convolution still has places, and all of them count."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from networks import CLASSES, Attention, SmallViT, TransformerBlock, batch, seeded, small_cnn, small_vit
from torch import Tensor, nn

from heatproof.attribute import attribute
from heatproof.errors import NotApplicable
from heatproof.methods.cam import GradCam, LayerCam, ScoreCam, cam_layer
from heatproof.models._support.last_cut import last_cut
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
    maps = attribute(model, pictures, GradCam(relu=False)).maps
    with torch.no_grad():
        logits = model(pictures.images).gather(1, pictures.targets[:, None])[:, 0]
        logits -= model.network.head.bias[pictures.targets]
    assert float(logits.std()) > 0
    assert torch.allclose(maps.mean((1, 2)) * 16, logits, rtol=1e-3, atol=1e-5)  # of 4 × 4 places


@pytest.mark.parametrize("method", [GradCam(), LayerCam(), ScoreCam()])
@pytest.mark.parametrize("kind", ["transformer", "mixer"])
def test_layouts_do_not_matter(kind: str, method: Any) -> None:
    one, other = (attribute(averaging(name), batch(3), method).maps for name in (kind, f"{kind}, channels last"))
    assert float(one.std()) > 0
    assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)


def test_behind_the_last_attention_a_class_token_is_all_that_counts() -> None:
    model, pictures = small_vit(), batch(1)
    assert last_cut(model, pictures.images) == "blocks.0"
    assert last_cut(model, pictures.images, also="blocks.1.norm1") == "blocks.1.norm1"  # comes later
    assert last_cut(model, pictures.images, also="blocks.0.norm1") == "blocks.0"  # comes earlier


class Around(nn.Module):
    """Two steps over patches; the answer is of the second, or of both."""

    def __init__(self, both: bool) -> None:
        super().__init__()
        self.both, self.embed, self.head = both, nn.Conv2d(3, 24, 8, 8), nn.Linear(24, CLASSES)
        self.before, self.one, self.two = nn.LayerNorm(24), TransformerBlock(24, 3), TransformerBlock(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(self.embed(x).flatten(2).transpose(1, 2))
        first = self.one(x)
        return self.head((self.two(x) + first if self.both else self.two(first)).mean(1))


@pytest.mark.parametrize(("both", "layer"), [(False, "two"), (True, "before")])
def test_a_layer_some_of_the_picture_goes_around_is_not_taken(both: bool, layer: str) -> None:
    model = Model("around", seeded(Around, both=both), fixed_size=True)
    assert last_cut(model, batch(1).images) == layer


class Pieces(nn.Module):
    """Each patch a picture of its own, normed, then one vector for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.LayerNorm(3), nn.Linear(3 * 32 * 32, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        pieces = x.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 4, 5, 1)  # (B, 4, 4, 8, 8, 3)
        return self.head(self.norm(pieces.flatten(0, 2)).reshape(len(x), -1))


def test_pieces_of_a_picture_are_not_taken_for_it() -> None:
    model = Model("pieces", seeded(Pieces), fixed_size=True)
    assert last_cut(model, batch(1).images) is None
    with pytest.raises(NotApplicable, match="no one layer was found through which all of it passes: name one"):
        GradCam()(model, batch(2))


class Shared(nn.Module):
    """One step that runs twice: what it gives is not one thing."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.step, self.head = nn.Conv2d(3, 24, 8, 8), TransformerBlock(24, 3), nn.Linear(24, CLASSES)
        self.norm = nn.LayerNorm(24)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.embed(x).flatten(2).transpose(1, 2))
        return self.head(self.step(self.step(x)).mean(1))


def test_a_step_that_runs_twice_is_left_out() -> None:
    assert last_cut(Model("shared", seeded(Shared), fixed_size=True), batch(1).images) == "norm"


def test_an_answer_that_depends_on_nothing_says_nothing_of_where() -> None:
    model = averaging("transformer")
    nn.init.zeros_(model.network.head.weight)
    assert last_cut(model, batch(1).images) == "norm"
    assert last_cut(model, batch(1).images, also="steps.1.norm1") == "steps.1.norm1"
    assert float(attribute(model, batch(2), GradCam()).maps.abs().max()) == 0


class Capsules(nn.Module):
    """Convolutions, and then vectors that are no places although sixteen of them would lay out as 4 × 4."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 24, 3, 4), nn.Linear(8, CLASSES)
        self.capsules = nn.Linear(24, 16 * 8)

    def forward(self, x: Tensor) -> Tensor:
        capsules = self.capsules(self.conv(x).relu().mean((2, 3))).unflatten(1, (16, 8))
        return self.head(capsules).mean(1)


def test_convolutions_are_read_as_before() -> None:
    assert cam_layer(Model("capsules", seeded(Capsules)), batch(1)) == "conv"
    assert cam_layer(small_cnn(), batch(1)) == "features"


def test_a_layer_with_channels_last_may_be_named() -> None:
    """Its sides come first: read as channels first, its map would be of channels."""
    pictures = Batch(torch.rand(2, 3, 32, 32), torch.arange(2), ("a", "b"))
    model = averaging("mixer, channels last")
    first, last = (attribute(model, pictures, GradCam(layer, relu=False)).maps for layer in ("steps", "norm"))
    assert first.shape == last.shape == (2, 32, 32)
    with torch.no_grad():
        gave: list[Tensor] = []
        model.network.norm.register_forward_hook(lambda module, inputs, output: gave.append(output))
        model.network(pictures.images)
    weights = model.network.head.weight[pictures.targets].detach() / 16
    coarse = (gave[0] * weights[:, None, None]).sum(-1)
    assert torch.allclose(last[:, ::31, ::31], coarse[:, ::3, ::3], atol=1e-5)  # the corners are not interpolated


@pytest.mark.parametrize("training", [False, True])
def test_looking_leaves_nothing_behind(training: bool) -> None:
    model = Model("vit", SmallViT(), fixed_size=True)
    model.network.train(training)
    model.network.blocks[0].mlp[0].weight.requires_grad_(False)
    requested = [parameter.requires_grad for parameter in model.network.parameters()]
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    with torch.no_grad():
        assert last_cut(model, batch(1).images) == "blocks.0"
        assert not torch.is_grad_enabled()
    assert all(module.training == training and not module._forward_hooks for module in model.network.modules())
    assert [parameter.requires_grad for parameter in model.network.parameters()] == requested
    assert all(parameter.grad is None for parameter in model.network.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.network.state_dict().items())


class Broken(Attention):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("broken")


def test_also_when_it_goes_wrong() -> None:
    model = small_vit()
    model.network.blocks[1].attn = Broken(24, 3)
    with pytest.raises(RuntimeError, match="broken"):
        last_cut(model, batch(1).images)
    assert all(not module._forward_hooks for module in model.network.modules())
