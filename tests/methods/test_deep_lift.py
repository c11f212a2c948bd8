"""DeepLIFT: completeness, captum, and refusing what its rule does not cover."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from captum.attr import DeepLift as CaptumDeepLift
from networks import batch, linear, small_cnn, small_resnet
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods._support.baselines import start
from heatproof.methods.deep_lift import DeepLift, pooled_maxima
from heatproof.types import Model


class Overlapping(nn.Module):
    """Max-pooling windows that share pixels, functional activations of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.head = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3), nn.Linear(6, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.one(x), inplace=True), 3, 2, 1)
        x = F.max_pool2d(F.silu(self.two(x)), 3, stride=2, padding=1)
        return self.head(torch.sigmoid(x).mean((2, 3)))


class Gated(nn.Module):
    """A product of two branches, which the rule does not cover."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.gate, self.head = nn.Conv2d(3, 6, 3), nn.Conv2d(3, 6, 3), nn.Linear(6, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head((F.relu(self.one(x)) * 5 * torch.sigmoid(3 * self.gate(x))).mean((2, 3)) * 10)


def gap(model: Model, method: DeepLift) -> float:
    pictures = batch(3)
    maps = method(model, pictures)
    with torch.no_grad():
        ends = [
            model(images).gather(1, pictures.targets[:, None])[:, 0]
            for images in (pictures.images, start(method.baseline, model, pictures))
        ]
    return float((maps.sum((1, 2)) - (ends[0] - ends[1])).abs().max() / maps.abs().sum((1, 2)).max())


@pytest.mark.parametrize("baseline", ["black", "mean", "blur", "gaussian"])
def test_complete(baseline: str) -> None:
    torch.manual_seed(0)
    for model in (linear(), small_cnn(), small_cnn(inplace=True), small_resnet(), Model("o", Overlapping())):
        assert gap(model, DeepLift(baseline)) < 1e-4


def test_exact_on_a_linear_model() -> None:
    model, pictures = linear(), batch(2)
    weights = model.network.fc.weight.detach()[pictures.targets].view(-1, 3, 32, 32)
    assert torch.allclose(DeepLift()(model, pictures), (weights * pictures.images).sum(1), atol=1e-6)


def test_agrees_with_captum() -> None:
    # Averages in place of maxima: captum's rule for max-pooling does not add up (0.0020 for a difference of
    # 0.0024 on this network as it is, where ours does), so there is nothing to agree with.
    model, pictures = small_cnn(), batch(3)
    model.network.features[2] = model.network.features[5] = nn.AvgPool2d(2)  # type: ignore[operator,index]
    inputs = model.normalised(pictures.images)
    zero = model.normalised(torch.zeros_like(pictures.images))
    theirs = CaptumDeepLift(model.network).attribute(inputs, zero, target=pictures.targets).detach()
    ours = DeepLift().channels(model, pictures)
    assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4 * float(theirs.abs().max()))


def test_a_product_of_branches_is_refused_with_the_two_sums() -> None:
    torch.manual_seed(0)
    with pytest.raises(NotApplicable, match=r"add up to .* instead of .*integrated_gradients"):
        DeepLift()(Model("gated", Gated()), batch(2))


def test_random_baselines_are_averaged() -> None:
    model, pictures = small_cnn(), batch(1)
    once = DeepLift("uniform")
    assert once.cost() == (2, 1)
    assert DeepLift("uniform", draws=3).cost() == (6, 3)
    assert not torch.equal(once(model, pictures), DeepLift("uniform", draws=3)(model, pictures))


class Moody(nn.Module):
    """Does more for bright pictures than for dark ones."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.head = nn.Conv2d(3, 6, 3), nn.Linear(6, 10)

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.one(x))
        if bool(x.mean() > 0.1):
            inner = F.relu(inner - 0.1)
        return self.head(inner.mean((2, 3)))


def test_a_network_that_does_other_things_to_its_baseline_is_refused() -> None:
    with pytest.raises(NotApplicable, match=r"same operations for every picture.*integrated_gradients"):
        DeepLift()(Model("moody", Moody()), batch(2))


def test_pixels_that_equal_their_baseline_get_no_share_and_spoil_none() -> None:
    # Where nothing changed, Δoutput / Δinput is 0 / 0.
    model, pictures = small_cnn(), batch(2)
    half = pictures.images.clone()
    half[:, :, :16] = 0
    maps = DeepLift()(model, pictures.showing(half))
    assert maps.isfinite().all()
    assert not maps[:, :16].any()
    assert maps[:, 16:].abs().sum() > 0


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"), [(2, 2, 0, 1), (3, 2, 1, 1), ((2, 3), 1, 0, (2, 1))]
)
def test_the_place_of_a_maximum_does_not_hang_on_rounding(
    kernel: int | tuple[int, int], stride: int, padding: int, dilation: int | tuple[int, int]
) -> None:
    generator = torch.Generator().manual_seed(0)
    plain = torch.rand(2, 3, 1, 1, generator=generator).expand(2, 3, 12, 12)
    noise = torch.rand(2, 3, 12, 12, generator=generator)
    clear = noise.mul(50).round() / 50  # maxima that win by far, or tie
    for exact in (plain, clear):
        rounded = exact * (1 + 1e-6 * (noise - 0.5))
        wanted, places = pooled_maxima(exact, kernel, stride, padding, dilation)
        outputs, others = pooled_maxima(rounded, kernel, stride=stride, padding=padding, dilation=dilation)
        assert torch.equal(places, others)
        assert torch.equal(outputs, F.max_pool2d(rounded, kernel, stride, padding, dilation))
        assert torch.equal(exact.flatten(2).gather(2, places.flatten(2)).view_as(wanted), wanted)


@pytest.mark.parametrize("side", [2, 3, 13, 28])
def test_a_maximum_that_wins_clearly_keeps_its_place(side: int) -> None:
    values = torch.rand(2, 4, 56, 56, generator=torch.Generator().manual_seed(0))
    values[0, 0] *= 1000  # neither another channel nor another picture makes a difference small
    values[0, 1, 0, 0] = -torch.inf
    outputs, places = pooled_maxima(values, side)
    assert torch.equal(outputs, F.max_pool2d(values, side))
    there = values.flatten(2).gather(2, places.flatten(2)).view_as(outputs)
    assert bool((outputs - there <= 3.1e-5 * outputs.amax((2, 3), keepdim=True)).all())
    alone = pooled_maxima(values[1:], [side])[1]
    assert torch.equal(places[1:], alone)
    if side < 20:
        _, usual = F.max_pool2d(values, side, return_indices=True)
        assert float((places != usual).float().mean()) < 1e-3


class Spelt(nn.Module):
    """Two convolutions with an activation spelt in one of many ways."""

    def __init__(self, activate: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.one, self.two, self.head = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3), nn.Linear(6, 10)
        self.activate = activate

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.activate(self.two(self.activate(self.one(x)))).mean((2, 3)))


@pytest.mark.parametrize(
    "activate",
    [
        *(Tensor.sigmoid_, F.elu_, F.leaky_relu_, F.softsign, F.logsigmoid, torch.tanh_, F.hardtanh_),
        *(lambda x: x.clamp(0, 6), lambda x: x.clamp_(min=0), nn.Threshold(0.1, 0.0), nn.ReLU(inplace=True)),
    ],
)
def test_an_activation_is_covered_however_it_is_spelt(activate: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    assert gap(Model("spelt", Spelt(activate)), DeepLift("blur")) < 1e-4


def test_small_answers_are_checked_as_strictly_as_large_ones() -> None:
    torch.manual_seed(0)
    network = Spelt(lambda x: x * torch.sigmoid(3 * x))
    network.head.weight.data *= 1e-3
    network.head.bias.data *= 1e-3
    with pytest.raises(NotApplicable, match="instead of"):
        DeepLift()(Model("gated", network), batch(3))


def test_a_plain_background_is_explained_alike_in_every_memory_layout() -> None:
    model, pictures = small_cnn(), batch(2)
    flat = torch.full_like(pictures.images, 0.7)
    flat[:, :, 8:16, 8:16] = pictures.images[:, :, 8:16, 8:16]
    other = Model("other", copy.deepcopy(model.network).to(memory_format=torch.channels_last), model.mean, model.std)
    one, two = (DeepLift()(each, pictures.showing(flat)) for each in (model, other))
    assert torch.allclose(one, two, rtol=1e-3, atol=1e-5 * float(one.abs().max()))
