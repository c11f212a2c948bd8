"""Activation maps against pytorch-grad-cam and captum, and their edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from captum.attr import GuidedGradCam as CaptumGuidedGradCam
from captum.attr import LayerGradCam
from networks import MEAN, STD, batch, small_cnn, small_resnet, small_vit
from torch import Tensor, nn

from heatproof import engine
from heatproof.attribute import attribute
from heatproof.errors import BadInput, NotApplicable, UnknownName
from heatproof.methods._support.layer_activations import activations, layer_of, tap
from heatproof.methods.cam import GradCam, GradCamPP, GuidedGradCam, LayerCam, ScoreCam, cam_layer
from heatproof.models import load
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.types import Batch, Model


def stretched(maps: Tensor) -> Tensor:
    low, high = (edge.view(-1, 1, 1) for edge in maps.flatten(1).aminmax(dim=1))
    return (maps - low) / (high - low)


def loud(model: Model) -> Model:
    """Larger logits: pytorch-grad-cam's fixed epsilons are then small beside the gradients."""
    last = [m for m in model.network.modules() if isinstance(m, nn.Linear)][-1]
    with torch.no_grad():
        last.weight.mul_(3000)
    return model


def reference(model: Model, name: str, layer: str) -> Tensor:
    import_torchvision("pytorch-grad-cam")
    import pytorch_grad_cam
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    pictures = batch(3)
    module = dict(model.network.named_modules())[layer]
    tokens = lambda x: x[:, 1:].transpose(1, 2).reshape(len(x), -1, 4, 4)  # noqa: E731
    cam = getattr(pytorch_grad_cam, name)(
        model.network, [module], reshape_transform=tokens if "norm" in layer else None
    )
    targets = [ClassifierOutputTarget(int(target)) for target in pictures.targets]
    return torch.from_numpy(cam(model.normalised(pictures.images), targets))


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("GradCAM", GradCam()),
        ("GradCAMPlusPlus", GradCamPP()),
        ("LayerCAM", LayerCam()),
        ("ScoreCAM", ScoreCam()),
    ],
)
def test_agrees_with_pytorch_grad_cam(name: str, method: Any) -> None:
    # ScoreCAM: a softmax of loud logits would leave one channel, and its gradients play no part
    dress = (lambda model: model) if name == "ScoreCAM" else loud
    for make, layer in ((small_cnn, "features"), (small_resnet, "layers"), (small_vit, "blocks.1.norm1")):
        if name == "ScoreCAM" and make is small_vit:
            continue  # theirs scales tokens to the picture before they are laid out
        model = dress(make())
        ours = method(model, batch(3))
        theirs = reference(dress(make()), name, layer)
        alive = ours.flatten(1).amax(1) > 0
        assert bool(alive.any())
        assert float((stretched(ours[alive]) - theirs[alive]).abs().max()) < 2e-3
        assert float(theirs[~alive].abs().sum()) == 0


def test_agrees_with_captum() -> None:
    model, pictures = small_cnn(), batch(3)
    inputs = model.normalised(pictures.images)
    low = LayerGradCam(model.network, model.network.features).attribute(inputs, pictures.targets)
    theirs = LayerGradCam.interpolate(low, (32, 32), "bilinear")[:, 0].detach()
    ours = GradCam(relu=False)(model, pictures)
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6 * float(theirs.abs().max()))
    guided = (
        CaptumGuidedGradCam(model.network, model.network.features)
        .attribute(inputs, pictures.targets, interpolate_mode="bilinear")
        .detach()
    )
    ours = GuidedGradCam().channels(model, pictures) * torch.tensor(model.std).view(1, 3, 1, 1)
    assert torch.allclose(ours, guided, rtol=1e-3, atol=1e-5 * float(guided.abs().max()))


def test_the_layer_is_found_or_named() -> None:
    pictures = batch(1)
    assert cam_layer(small_cnn(), pictures) == "features"
    assert cam_layer(small_resnet(), pictures) == "layers"
    assert cam_layer(small_vit(), pictures) == "blocks.1.norm1"
    early = replace(small_cnn(), cam_layer="features.0")
    assert torch.equal(GradCam()(early, pictures), GradCam("features.0")(small_cnn(), pictures))
    with pytest.raises(UnknownName, match="Did you mean 'features'"):
        GradCam("featurs")(small_cnn(), pictures)
    with pytest.raises(NotApplicable, match=r"layer of \(batch, channels, height, width\)"):
        GradCam("head")(small_cnn(), pictures)
    with pytest.raises(NotApplicable, match="runs 2 times"):
        GradCam("layers.0.relu")(small_resnet(), pictures)


def test_of_many_layers_the_nearest_few_are_named() -> None:
    long = Model("long", nn.Sequential(*(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()) for _ in range(70))))
    with pytest.raises(UnknownName) as refused:
        layer_of(long, "nope")
    assert "Of 210 names, the nearest are: " in str(refused.value)
    assert len(str(refused.value).split(", ")) <= 13
    with pytest.raises(UnknownName, match=r"Did you mean '69\.1' or '69\.0' or '69'\?"):
        layer_of(long, "69.2")


class Again(nn.Module):
    """A convolution that runs twice, or two with the same weights; or one beside the other."""

    def __init__(self, shared: bool, side_by_side: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.one, self.head = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 10)
        if not shared:
            self.two = nn.Conv2d(8, 8, 3, padding=1)
            self.two.load_state_dict(self.one.state_dict())
        self.shared, self.side_by_side = shared, side_by_side

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        once, two = self.one(x), self.one if self.shared else self.two
        x = once + two(x.mT) if self.side_by_side else two(once.sigmoid())
        return self.head(x.relu_().mean((2, 3)))


def test_the_last_run_of_a_convolution_is_read_as_if_it_were_a_layer_of_its_own() -> None:
    pictures = batch(3)
    shared, apart = (Model("again", Again(kind), MEAN, STD) for kind in (True, False))
    assert (cam_layer(shared, pictures), cam_layer(apart, pictures)) == ("one:last", "two")
    for method in (GradCam(relu=False), GradCamPP(), LayerCam(), ScoreCam()):
        maps = attribute(shared, pictures, method).maps
        assert float(maps.abs().max()) > 0
        assert torch.allclose(maps, attribute(apart, pictures, method).maps, rtol=1e-4, atol=1e-7)
    message, wanted = (activations(one, pictures.images, cam_layer(one, pictures)) for one in (shared, apart))
    assert float(message.min()) < 0  # before the rectifier that works in place
    assert torch.allclose(message, wanted, rtol=1e-4, atol=1e-6)


def test_runs_side_by_side_are_not_one_thing() -> None:
    with pytest.raises(NotApplicable, match=r"'one' runs 2 times .*: name another .*, or one:last for its last run"):
        GradCam()(Model("beside", Again(True, side_by_side=True), MEAN, STD), batch(1))


def test_an_all_negative_map_is_zero_and_never_nan() -> None:
    model = small_cnn()
    with torch.no_grad():
        model.network.head[1].weight.abs_()
        model.network.head[3].weight.copy_(-model.network.head[3].weight.abs())
    for method in (GradCam(), GradCamPP(), LayerCam()):
        assert float(method(model, batch(2)).abs().max()) == 0
    assert float(GradCam(relu=False)(model, batch(2)).max()) <= 0


def test_small_gradients_do_not_drown() -> None:
    """Grad-CAM++ is the same map for a model whose logits are a thousandth, but for the curvature term."""
    model, faint = small_cnn(), small_cnn()
    with torch.no_grad():
        for part in (faint.network.head[3].weight, faint.network.head[3].bias):
            part.mul_(1e-3)
    maps, small = (stretched(GradCamPP()(m, batch(2))) for m in (model, faint))
    assert float((maps - small).abs().max()) < 0.05


def test_score_cam_with_a_limit_keeps_the_channels_that_vary_most() -> None:
    model, pictures = small_cnn(), batch(2)
    assert torch.equal(ScoreCam(limit=99)(model, pictures), ScoreCam()(model, pictures))
    assert not torch.equal(ScoreCam(limit=3)(model, pictures), ScoreCam()(model, pictures))
    assert ScoreCam(limit=3).cost() == (4, 1)


def test_the_input_of_a_layer_is_the_output_of_the_one_before() -> None:
    pictures = batch(2)
    for method in (GradCam, GradCamPP, LayerCam):
        given, gave = (method(layer=layer)(small_cnn(), pictures) for layer in ("pool:input", "features"))
        assert float(gave.abs().max()) > 0
        assert torch.equal(given, gave)
    with pytest.raises(BadInput, match="NAME:input"):
        GradCam(layer="pool:output")(small_cnn(), pictures)


def test_efficientnet_lite_is_read_behind_its_last_rectifier() -> None:
    """Before it, activations are of both signs and Grad-CAM++'s shares are not shares."""
    model = load("efficientnet-lite0")
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(2, 3, 224, 224, generator=generator)
    pictures = Batch(images, torch.tensor([3, 400]), ("a", "b"))
    caught = tap(model, pictures, cam_layer(model, pictures), "logit")
    assert caught.activations.shape[1:] == (1280, 7, 7)
    assert float(caught.activations.min()) == 0
    assert float(caught.activations.max()) <= 6
    maps = attribute(model, pictures, GradCamPP()).maps
    assert all(float(one.max()) > 0 for one in maps)


class FixedSize(nn.Module):
    """A network that takes pictures of one shape only; its last convolution may be laid out channels last."""

    def __init__(self, shape: tuple[int, int], last: bool) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 6, 3, stride=2)
        self.mixed = nn.Linear(6, 12) if last else nn.Conv2d(6, 12, 1)
        places = ((shape[0] + 1) // 2 - 1) // 2 * (((shape[1] + 1) // 2 - 1) // 2)
        self.head, self.last = nn.Linear(12 * places, 10), last

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv2(self.conv1(x).relu())
        return self.head(self.mixed(x.movedim(1, -1) if self.last else x).flatten(1))


@pytest.mark.parametrize("shape", [(33, 47), (64, 24), (12, 96), (40, 40)])
@pytest.mark.parametrize(("last", "layer"), [(False, "mixed"), (True, "conv2")])
def test_pictures_of_any_shape_are_looked_at_in_their_own(shape: tuple[int, int], last: bool, layer: str) -> None:
    torch.manual_seed(0)
    model = Model("fixed", FixedSize(shape, last), fixed_size=True)
    pictures = Batch(torch.rand(2, 3, *shape), torch.arange(2), ("a", "b"))
    assert cam_layer(model, pictures) == layer
    assert float(attribute(model, pictures, GradCam(relu=False)).maps.std()) > 0


def test_those_who_tap_a_layer_run_the_network_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a copy is chosen for all other passes."""
    model, pictures, seen = small_cnn(), batch(2), []
    with engine.use(engine.Engine(always=engine.Choice("eager", "contiguous", 2))):
        engine.settled(model, pictures.images, "gradient")  # the copy is made
        forward = model.network.forward
        monkeypatch.setattr(model.network, "forward", lambda shown: (seen.append(len(shown)), forward(shown))[1])
        GradCam()(model, pictures)
        activations(model, pictures.images, "features")
    assert seen.count(2) >= 2
