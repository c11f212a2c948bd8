"""Guided backpropagation and deconvnet, however a network writes its rectifiers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from captum.attr import Deconvolution
from captum.attr import GuidedBackprop as CaptumGuidedBackprop
from networks import MEAN, STD, batch, small_cnn
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods.guided_backprop import DeconvNet, GuidedBackprop
from heatproof.spec.parse import parse
from heatproof.types import Model


def in_place(change: Callable[[Tensor], object]) -> Callable[[Tensor], Tensor]:
    """A rectifier that changes its input, and whose answer is not used."""

    def changed(x: Tensor) -> Tensor:
        change(x)
        return x

    return changed


WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "module": nn.ReLU(),
    "relu6_module": nn.ReLU6(),
    "function": F.relu,
    "in_place_function": lambda x: F.relu(x, True),
    "in_place_ignoring_the_answer": in_place(lambda x: F.relu(x, inplace=True)),
    "torch": torch.relu,
    "tensor_method": lambda x: x.relu(),
    "in_place_tensor_method": in_place(lambda x: x.relu_()),
    "relu6": F.relu6,
    "clamp": lambda x: x.clamp(min=0),
    "clamp_to_six": lambda x: torch.clamp(x, 0, 6),
    "in_place_clamp": in_place(lambda x: x.clamp_(0)),
    "clamp_min": lambda x: torch.clamp_min(x, 0),
    "threshold": lambda x: F.threshold(x, 0, 0),
    "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "clamp_to_a_tensor": lambda x: x.clamp(min=torch.tensor(0.0)),
    "clamp_min_to_a_tensor": lambda x: x.clamp_min(torch.zeros_like(x)),
    "leaky_by_nothing": lambda x: F.leaky_relu(x, 0.0),
    "fmax": lambda x: torch.fmax(x, torch.zeros_like(x)),
    "maximum_of_zero_first": lambda x: torch.max(torch.tensor(0.0), x),
}


class Written(nn.Module):
    """The same convolutions, with the rectifier written in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.head = nn.Linear(6, 10)
        self.rectify = WAYS[way]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rectify(self.two(self.rectify(self.one(x)))).mean((2, 3)))


def written(way: str) -> Model:
    torch.manual_seed(3)
    return Model(way, Written(way), MEAN, STD)


def test_agrees_with_captum() -> None:
    model, pictures = small_cnn(), batch(3)
    for ours, theirs in ((GuidedBackprop(), CaptumGuidedBackprop), (DeconvNet(), Deconvolution)):
        # captum wants a module; the network alone, and its gradient by the chain rule of the normalisation
        wanted = theirs(model.network).attribute(model.normalised(pictures.images), target=pictures.targets)
        wanted = wanted.detach() / torch.tensor(STD).view(1, 3, 1, 1)
        got = ours.channels(model, pictures)
        assert torch.allclose(got, wanted, rtol=1e-4, atol=1e-6 * float(wanted.abs().max()))
        plain = torch.autograd.functional.jacobian(lambda x: model(x)[0, 0], pictures.images)[0]
        assert not torch.allclose(got[0], plain, rtol=1e-2)


def test_every_way_of_writing_a_rectifier_is_the_same() -> None:
    pictures = batch(2)
    for method in (GuidedBackprop(), DeconvNet()):
        wanted = method(written("module"), pictures)
        for way in (
            *("function", "in_place_function", "in_place_ignoring_the_answer", "torch"),
            *("tensor_method", "in_place_tensor_method"),
            *("relu6", "relu6_module", "clamp_to_six"),  # no activation here exceeds six
            *("clamp", "in_place_clamp", "clamp_min", "threshold", "maximum", "maximum_of_zero_first"),
            *("clamp_to_a_tensor", "clamp_min_to_a_tensor", "leaky_by_nothing", "fmax"),
        ):
            assert torch.allclose(method(written(way), pictures), wanted, rtol=1e-5, atol=1e-9), way


def test_the_rule_on_numbers() -> None:
    """One positive, one negative and one closed rectifier, by hand."""

    class Three(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            signs = torch.tensor([1.0, 1.0, -1.0]).view(1, 3, 1, 1)
            output = (F.relu(x * signs) * torch.tensor([2.0, -3.0, 5.0]).view(1, 3, 1, 1)).sum((1, 2, 3))
            return torch.stack([output, -output], 1)

    pictures = batch(1, size=4)
    model = Model("three", Three())
    assert GuidedBackprop().channels(model, pictures)[0, :, 0, 0].tolist() == [2.0, 0.0, 0.0]
    assert DeconvNet().channels(model, pictures)[0, :, 0, 0].tolist() == [2.0, 0.0, -5.0]


class Clamping(nn.Module):
    """Keeps its input in [0, 1] before anything else, which rectifies nothing."""

    def __init__(self, clamps: bool) -> None:
        super().__init__()
        self.clamps, self.inner = clamps, Written("function")

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.clamp(0, 1) if self.clamps else x)


def test_a_picture_kept_in_its_range_is_not_rectified() -> None:
    pictures, maps = batch(2), []
    for clamps in (True, False):
        torch.manual_seed(3)
        maps.append(GuidedBackprop()(Model("clamping", Clamping(clamps)), pictures))
    assert bool((maps[0] < 0).any())
    assert torch.equal(*maps)


class Alike(nn.Module):
    """Operations much like rectifiers that change nothing here, before rectifiers."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.inner = what, Written("function")

    def forward(self, x: Tensor) -> Tensor:
        match self.what:
            case "a number":
                other = torch.full_like(x, -5.0)  # never reached: the larger one is always what passes
            case "what passes too":
                other = x - 1
            case "hardtanh":
                return self.inner(F.hardtanh(x, -9, 9))
            case "clamp_min":
                return self.inner(x.clamp_min(-9))
            case "clamp_min to a tensor":
                return self.inner(x.clamp_min(torch.full_like(x, -9)))
            case "threshold":
                return self.inner(F.threshold(x, -9, 0))
            case "leaky":
                return self.inner(F.leaky_relu(x + 1, 0.1) - 1)
        return self.inner(torch.maximum(x, other))


@pytest.mark.parametrize(
    "what",
    ["a number", "what passes too", "hardtanh", "clamp_min", "clamp_min to a tensor", "threshold", "leaky"],
)
def test_what_cuts_elsewhere_is_no_rectifier(what: str) -> None:
    torch.manual_seed(3)
    model = Model("alike", Alike(what))
    plain = Model("plain", model.network.inner)  # type: ignore[arg-type]
    found, wanted = (DeconvNet()(each, batch(2)) for each in (model, plain))
    assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-6 * float(wanted.abs().max()))


class IntoAView(nn.Module):
    """Rectifies other views of what it computed, or new numbers; writes into parts of it, too."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4), nn.Linear(4, 10)
        self.act, self.last = nn.ReLU(inplace), nn.ReLU6(inplace)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.act(self.norm(self.conv(x))).clone()
        inner[:, 0] = inner[:, 0] * 2
        inner = torch.clamp_(inner, min=0) if self.act.inplace else inner.clamp(min=0)
        inner = self.last(inner[:, :, 2:9, 3:8].flatten(1).view(-1, 4, 35).mean(2))
        return self.head(F.relu(inner.view(-1, 4) - 0.2, self.act.inplace))


@pytest.mark.parametrize("method", [GuidedBackprop(), DeconvNet()], ids=str)
def test_rectifiers_that_write_into_views_are_seen(method: GuidedBackprop | DeconvNet) -> None:
    pictures, maps = batch(2), []
    for inplace in (True, False):
        torch.manual_seed(5)
        maps.append(method(Model("view", IntoAView(inplace)), pictures))
    assert torch.allclose(*maps, rtol=1e-5, atol=1e-7 * float(maps[0].abs().max()))
    assert maps[0].any()


class WithLogits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = small_cnn().network

    def forward(self, x: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.inner(x))


def test_an_answer_that_holds_its_logits_is_the_same() -> None:
    plain, held = small_cnn(), Model("held", WithLogits(), MEAN, STD)
    assert torch.equal(GuidedBackprop()(held, batch(2)), GuidedBackprop()(plain, batch(2)))


def test_every_micro_batch_is_passed_by_the_rule() -> None:
    model, pictures = small_cnn(), batch(20)  # of eight
    alone = torch.cat([GuidedBackprop()(model, pictures.select([row])) for row in range(20)])
    assert torch.allclose(GuidedBackprop()(model, pictures), alone, rtol=1e-4, atol=1e-6 * float(alone.abs().max()))


@pytest.mark.parametrize("name", ["guided_backprop", "deconvnet", "guided_grad_cam"])
def test_without_rectifiers_each_is_named_with_what_to_take(name: str) -> None:
    smooth = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10))
    with pytest.raises(NotApplicable, match=rf"{name}\b.* change how ReLUs are passed.*: take saliency, .*grad_cam"):
        parse("method", name)(Model("smooth", smooth), batch(1))
