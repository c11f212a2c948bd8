"""The error where there is no finite map, whose and of which image; no pictures, and targets that are no classes."""

from __future__ import annotations

import cheaper
import networks
import pytest
import torch
from networks import MEAN, STD, batch, small_cnn
from torch import Tensor, nn

from heatproof import engine, registry
from heatproof.attribute import attribute
from heatproof.errors import BadInput, BadModel, BadShape, NotApplicable
from heatproof.methods.saliency import Saliency
from heatproof.spec.parse import parse
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
def test_a_network_without_an_answer_is_reported_with_method_and_image(label: str) -> None:
    model = Model("breaks", Breaks())
    with pytest.raises(BadModel, match="on 2 of these 4 images unchanged, first on 'picture1'") as caught:
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


def test_a_map_that_is_not_finite_is_reported_by_the_methods_label() -> None:
    pictures = batch(3)
    pictures.images[2, :, 0, 0] = 0
    message = r"maps of saliency\(signed=True\) must be finite, got .* 1 of 3 images, first on 'picture2'"
    with pytest.raises(BadShape, match=message):
        attribute(Model("steep", Steep()), pictures, Saliency(signed=True))


def test_asking_which_image_it_was_leaves_the_network_alone() -> None:
    model = Model("breaks", nn.Sequential(nn.BatchNorm2d(3), Breaks(), nn.Dropout()))
    model.network[0].eps = 0.0  # an identity, so that white stays white
    model.network.train()
    with pytest.raises(BadModel, match="first on 'picture0'"):
        attribute(model, white_corners(0), Saliency())
    assert all(module.training for module in model.network.modules())
    assert torch.equal(model.network[0].running_mean, torch.zeros(3))


BEYOND = (
    "bcos",
    "mean_region",
    "precomputed",
    *networks.TOKENS,
)  # they do not explain a plain CNN, whatever the target
UNAWARE = ("centre", "constant", "edges", "eigen_cam", "oracle", "random")  # they give the same map for every class


@pytest.mark.parametrize("name", registry.names("method"))
def test_of_no_pictures_there_are_no_maps(name: str) -> None:
    method = registry.find("method", name)
    maps = attribute(small_cnn(), batch(2).select([]), method).maps
    assert maps.shape == (0, 32, 32)
    assert maps.dtype == torch.float32


@pytest.mark.parametrize("targets", [(0, 10), (-1, 9)], ids=["beyond", "below"])
@pytest.mark.parametrize("name", [name for name in registry.names("method") if name not in BEYOND + UNAWARE])
def test_a_target_that_is_no_class_is_refused_in_the_same_words(name: str, targets: tuple[int, int]) -> None:
    method = registry.find("method", name, **cheaper.METHODS.get(name, {}))
    low, high = targets
    message = f"^targets must be classes 0 … 9 of model 'small_cnn', got {low} … {high}$"
    with engine.use(engine.Engine(measure=False)), pytest.raises(BadInput, match=message) as caught:
        attribute(small_cnn(), batch(2).aimed(torch.tensor(targets)), method)
    assert caught.value.__cause__ is not None


def test_targets_are_checked_only_once_a_method_has_failed_and_blamed_only_if_they_are_to_blame() -> None:
    seen: list[int] = []
    model = small_cnn()
    model.network.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))

    def fails(model: Model, batch: Batch) -> Tensor:
        raise RuntimeError("for a reason of its own")

    def declines(model: Model, batch: Batch) -> Tensor:
        raise NotApplicable("not here")

    wrong = batch(3).aimed(torch.tensor([0, 1, 10]))
    attribute(model, wrong, parse("method", "centre"))
    with pytest.raises(NotApplicable, match="not here"):
        attribute(model, wrong, declines)
    assert not seen
    with pytest.raises(RuntimeError, match="of its own"):
        attribute(model, batch(3), fails)
    assert seen == [1, 1]  # about targets, and about slopes
    with pytest.raises(BadInput, match="targets") as caught:
        attribute(model, wrong, fails)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_network_that_takes_no_pictures_leaves_the_error_alone() -> None:
    def fails(model: Model, batch: Batch) -> Tensor:
        raise RuntimeError("for a reason of its own")

    with pytest.raises(RuntimeError, match="of its own"):
        attribute(Model("narrow", nn.Linear(7, 10)), batch(2), fails)


class Cut(nn.Module):
    """Answers, but its slopes do not show what it looks at."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.inner = how, small_cnn().network

    def forward(self, images: Tensor) -> Tensor:
        return self.inner(images.detach()) if self.how == "input" else self.inner(images).detach()


@pytest.mark.parametrize("how", ["input", "answer"])
@pytest.mark.parametrize(
    "name", ["saliency", "mfaba", "agi", "boundary_ig", "deep_lift", "grad_cam", "lrp", "guided_ig"]
)
def test_a_network_that_cuts_the_gradient_is_refused_with_the_reason(name: str, how: str) -> None:
    how = "answer" if name == "grad_cam" else how  # to whom the layers below his do not matter
    model = Model("cut", Cut(how), MEAN, STD, cam_layer="inner.features")
    with (
        engine.use(engine.Engine(measure=False)),
        pytest.raises(BadModel, match=r"'cut' must be differentiable .* remove detach"),
    ):
        attribute(model, batch(2), registry.find("method", name, **cheaper.METHODS.get(name, {})))


def test_a_network_that_cuts_the_gradient_may_still_be_run_forward() -> None:
    model = Model("cut", Cut("answer"), MEAN, STD)
    method = registry.find("method", "rise", masks=4)
    assert attribute(model, batch(2), method).maps.any()


@pytest.mark.parametrize("name", [name for name in registry.names("method") if name not in (*BEYOND, "tcav")])
def test_a_network_in_double_precision_is_explained(name: str) -> None:
    model = small_cnn()
    model.network.double()
    method = registry.find("method", name, **cheaper.METHODS.get(name, {}))
    with engine.use(engine.Engine(measure=False)):
        maps = attribute(model, batch(2), method).maps
    assert maps.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["saliency", "occlusion", "grad_cam", "idgi", "sobol"])
def test_a_network_in_half_precision_has_nearly_the_same_maps(name: str, dtype: torch.dtype) -> None:
    plain, half = small_cnn(), small_cnn()
    half.network.to(dtype)
    method = registry.find("method", name, **cheaper.METHODS.get(name, {}))
    with engine.use(engine.Engine(measure=False)):
        maps = [attribute(model, batch(2), method).maps for model in (plain, half)]
    assert maps[1].dtype == torch.float32
    assert float(torch.corrcoef(torch.stack([one.flatten() for one in maps]))[0, 1]) > 0.97
