"""HiResCAM, XGrad-CAM, Ablation-CAM, Eigen-CAM, FullGrad, Shapley-CAM and Finer-CAM: axioms and pytorch-grad-cam."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from networks import CLASSES, MEAN, STD, batch, seeded, small_cnn, small_resnet, small_vit
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods._support.layer_activations import activations, tap
from heatproof.methods._support.upsample import upsample
from heatproof.methods.ablation_cam import AblationCam
from heatproof.methods.cam import GradCam
from heatproof.methods.eigen_cam import EigenCam, principal
from heatproof.methods.finer_cam import difference
from heatproof.methods.full_grad import FullGrad, shares
from heatproof.methods.hires_cam import HiResCam
from heatproof.methods.shapley_cam import ShapleyCam, corrected
from heatproof.methods.xgrad_cam import XGradCam
from heatproof.models._support.token_layouts import as_pictures
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.types import Model, read


class Pooled(nn.Module):
    """Rectified convolutions, their mean over places, and one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 5, 4, 2), nn.ReLU(), nn.Conv2d(8, 12, 3, 1, 1), nn.ReLU())
        self.fc = nn.Linear(12, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x).mean((2, 3)))


def pooled() -> Model:
    return Model("pooled", seeded(Pooled), MEAN, STD, "features")


def stretched(maps: Tensor) -> Tensor:
    low, high = (edge.view(-1, 1, 1) for edge in maps.flatten(1).aminmax(dim=1))
    return (maps - low) / (high - low)


def loud(model: Model) -> Model:
    """Larger logits: pytorch-grad-cam's fixed epsilons are then small beside the gradients."""
    last = [m for m in model.network.modules() if isinstance(m, nn.Linear)][-1]
    with torch.no_grad():
        last.weight.mul_(300)
    return model


def reference(model: Model, name: str, layer: str, target: str = "ClassifierOutputTarget") -> Tensor:
    """pytorch-grad-cam's maps, picture by picture: some of its methods mix the pictures of a batch."""
    import_torchvision("pytorch-grad-cam")
    import pytorch_grad_cam
    from pytorch_grad_cam.utils import model_targets

    pictures = batch(3)
    module = dict(model.network.named_modules())[layer]
    tokens = (lambda x: x[:, 1:].transpose(1, 2).reshape(len(x), -1, 4, 4)) if "norm" in layer else None
    cam = getattr(pytorch_grad_cam, name)(model.network, [module], reshape_transform=tokens)
    aims = [getattr(model_targets, target)(int(aim)) for aim in pictures.targets]
    inputs = model.normalised(pictures.images)
    return torch.cat([torch.from_numpy(cam(inputs[[i]], [aims[i]])) for i in range(3)])


NETWORKS = [(small_cnn, "features"), (small_resnet, "layers"), (small_vit, "blocks.1.norm1"), (pooled, "features")]


@pytest.mark.parametrize(
    ("name", "method", "target"),
    [
        ("HiResCAM", HiResCam(), "ClassifierOutputTarget"),
        ("XGradCAM", XGradCam(), "ClassifierOutputTarget"),
        ("ShapleyCAM", ShapleyCam(readout="logit"), "ClassifierOutputTarget"),
        ("ShapleyCAM", ShapleyCam(), "ClassifierOutputReST"),
    ],
)
def test_agrees_with_pytorch_grad_cam(name: str, method: Any, target: str) -> None:
    compared = 0
    for make, layer in NETWORKS:
        if make is small_vit and name in ("XGradCAM", "ShapleyCAM"):
            continue  # theirs divides by sums that cancel; fused attention has no second derivative there
        dress = (lambda model: model) if target == "ClassifierOutputReST" else loud
        ours, theirs = method(dress(make()), batch(3)), reference(dress(make()), name, layer, target)
        alive = (ours.flatten(1).amax(1) > 0) & (theirs.flatten(1).amax(1) > 0)
        compared += int(alive.sum())
        assert float((stretched(ours[alive]) - theirs[alive]).abs().max()) < 2e-3
    assert compared >= 5


@pytest.mark.parametrize(("make", "layer"), NETWORKS)
def test_eigen_cam_agrees_with_pytorch_grad_cam_but_for_the_sign_which_is_arbitrary_there(
    make: Any, layer: str
) -> None:
    pictures, theirs = batch(3), reference(make(), "EigenCAM", layer)
    found = as_pictures(activations(make(), pictures.images, layer), pictures.images.shape[2:])
    for row, other in zip(found, theirs, strict=True):
        component = principal(row).float()[None]
        maps = [stretched(upsample(side.clamp(min=0), pictures.images[:1]))[0] for side in (component, -component)]
        assert min(float((own - other).abs().max()) for own in maps) < 2e-3
    upright = upsample(torch.stack([principal(row) for row in found]).float().clamp(min=0), pictures.images)
    assert torch.allclose(EigenCam(layer)(make(), pictures), upright, atol=1e-5)


def test_ablation_cam_agrees_with_pytorch_grad_cam() -> None:
    """Where activations are at least zero: theirs switches a channel off by a huge negative number elsewhere."""
    model = pooled()
    with torch.no_grad():
        model.network.fc.bias.add_(5)  # positive answers: theirs divides by the answer with its sign
    ours, theirs = AblationCam()(model, batch(3)), reference(model, "AblationCAM", "features")
    alive = ours.flatten(1).amax(1) > 0
    assert bool(alive.any())
    assert float((stretched(ours[alive]) - theirs[alive]).abs().max()) < 2e-3


def test_finer_cam_agrees_with_pytorch_grad_cam() -> None:
    import_torchvision("pytorch-grad-cam")
    from pytorch_grad_cam.utils.model_targets import FinerWeightedTarget

    logits = torch.randn(6, CLASSES, generator=torch.Generator().manual_seed(3))
    targets = torch.arange(6)
    for alpha in (0.0, 0.6, 1.0):
        theirs = []
        for row, target in zip(logits, targets.tolist(), strict=True):
            nearest = (row - row[target]).abs().argsort().tolist()
            theirs.append(FinerWeightedTarget(target, nearest[1:4], alpha)(row))
        assert torch.allclose(difference(logits, targets, 3, alpha), torch.stack(theirs), atol=1e-6)


def test_finer_cam_of_two_classes_is_their_difference_and_equal_logits_leave_the_target_itself_out() -> None:
    logits, targets = torch.randn(4, 2), torch.tensor([0, 1, 1, 0])
    wanted = read(logits, targets, "logit") - read(logits, 1 - targets, "logit")
    assert torch.allclose(difference(logits, targets, 3, 1.0), wanted, atol=1e-6)
    equal = torch.zeros(3, 5)
    equal[:, 4] = -9
    assert torch.allclose(difference(equal, torch.tensor([3, 2, 0]), 3, 0.5), torch.zeros(3), atol=1e-6)


def test_before_one_linear_layer_hires_cam_adds_up_to_the_logit() -> None:
    model, pictures = pooled(), batch(3)
    maps = HiResCam(relu=False)(model, pictures)
    grid = tap(model, pictures, "features", "logit")
    total = (grid.activations * grid.gradients).sum((1, 2, 3))
    logits = read(model(pictures.images), pictures.targets, "logit") - model.network.fc.bias[pictures.targets]
    assert torch.allclose(total, logits, atol=1e-5)
    assert torch.allclose(maps, upsample((grid.activations * grid.gradients).sum(1), pictures.images))


def test_hires_cam_is_refused_before_a_norm_over_channels() -> None:
    """x · d norm(x)/dx = 0: a map there would be rounding."""

    class Normed(Pooled):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(12, eps=1e-8)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.norm(self.features(x).permute(0, 2, 3, 1)).mean((1, 2)))

    model, pictures = Model("normed", seeded(Normed), MEAN, STD, "features"), batch(2)
    with pytest.raises(NotApplicable, match="a norm over channels follows its layer"):
        HiResCam()(model, pictures)
    assert float(HiResCam(layer="norm")(model, pictures).abs().max()) > 0
    assert float(GradCam()(model, pictures).abs().max()) > 0


@pytest.mark.parametrize("method", [HiResCam, XGradCam, partial(ShapleyCam, readout="logit")])
def test_behind_a_mean_over_places_it_is_grad_cam(method: Any) -> None:
    for relu in (True, False):
        maps = method(relu=relu)(pooled(), batch(3))
        assert torch.allclose(maps, GradCam(relu=relu)(pooled(), batch(3)), atol=1e-6 + 1e-5 * float(maps.abs().max()))


def test_ablation_weights_behind_a_mean_over_places_are_weight_times_mean() -> None:
    model, pictures = pooled(), batch(3)
    found = activations(model, pictures.images, "features")
    logits = read(model(pictures.images), pictures.targets, "logit")
    lost = model.network.fc.weight[pictures.targets] * found.mean((2, 3)) / logits.abs()[:, None]
    wanted = (lost[:, :, None, None] * found).sum(1)
    assert torch.allclose(AblationCam(relu=False)(model, pictures), upsample(wanted, pictures.images), atol=1e-4)
    assert torch.equal(AblationCam(limit=99)(model, pictures), AblationCam()(model, pictures))
    assert not torch.equal(AblationCam(limit=2)(model, pictures), AblationCam()(model, pictures))
    assert AblationCam(limit=3).cost() == (5, 0)


def test_ablation_of_tokens_switches_off_their_channels() -> None:
    """By hand: the same layer's output with one channel at zero."""
    model, pictures = small_vit(), batch(1)
    network = model.network
    with torch.no_grad():
        inner = network.patch_embed(model.normalised(pictures.images)).flatten(2).transpose(1, 2)
        tokens = torch.cat([network.cls_token, inner], 1) + network.pos_embed
        tokens = network.blocks[0](tokens)
        normed = network.blocks[1].norm1(tokens)

        def answered(normed: Tensor) -> Tensor:
            x = tokens + network.blocks[1].attn(normed)
            x = x + network.blocks[1].mlp(network.blocks[1].norm2(x))
            return network.head(network.norm(x)[:, 0])[0, 0]

        whole, lost = answered(normed), []
        for channel in range(normed.shape[-1]):
            off = normed.clone()
            off[..., channel] = 0
            lost.append((whole - answered(off)) / whole.abs())
        grid = normed[:, 1:].transpose(1, 2).reshape(1, -1, 4, 4)
        wanted = (torch.stack(lost)[None, :, None, None] * grid).sum(1)
    assert torch.allclose(AblationCam(relu=False)(model, pictures), upsample(wanted, pictures.images), atol=1e-4)


def test_the_principal_component_of_one_pattern_is_that_pattern() -> None:
    pattern = torch.rand(5, 6)
    activations_of_it = torch.tensor([3.0, 1.0, 0.5])[:, None, None] * pattern
    found = principal(activations_of_it).float()
    centred = pattern - pattern.mean()
    assert torch.allclose(found / found.norm(), centred / centred.norm(), atol=1e-5)


def test_eigen_cam_is_blind_to_the_class() -> None:
    model, pictures = small_cnn(), batch(2)
    assert torch.equal(EigenCam()(model, pictures), EigenCam()(model, pictures.aimed(pictures.targets + 3)))


@pytest.mark.parametrize("make", [small_cnn, small_resnet, pooled])
def test_input_and_all_biases_add_up_to_the_logit(make: Any) -> None:
    model, pictures = make(), batch(3)
    found = shares(model, pictures, "logit")
    total = found.pixels.flatten(1).sum(1) + sum(part.flatten(1).sum(1) for part in found.biases)
    logits = read(model(pictures.images), pictures.targets, "logit")
    assert torch.allclose(total, logits, atol=1e-4)
    assert float(sum(part.flatten(1).sum(1) for part in found.biases).abs().max()) > 1e-2  # biases matter here


def test_full_grad_takes_no_window_for_a_picture() -> None:
    """Layers within windows have more rows than there are pictures, in another order of places."""
    model, pictures = Model("windowed", seeded(Windows), MEAN, STD), batch(3)
    alone = torch.cat([FullGrad()(model, pictures.select([row])) for row in range(3)])
    torch.testing.assert_close(FullGrad()(model, pictures), alone, rtol=1e-5, atol=1e-6)
    names = [len(part) for part in shares(model, pictures, "logit").biases]
    assert set(names) == {3}


class Windows(nn.Module):
    """A linear layer within the quarters of a picture's tokens, and one that sees no picture, as in Swin v2."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.within, self.head = nn.Conv2d(3, 8, 4, 4), nn.Linear(8, 8), nn.Linear(8, CLASSES)
        self.positions = nn.Linear(2, 8)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).mT
        tokens = tokens + self.positions(torch.linspace(-1, 1, 128).view(1, 8, 8, 2)).relu().view(1, 64, 8)
        return self.head((tokens + self.within(tokens.reshape(-1, 16, 8)).relu().reshape(tokens.shape)).mean(1))


def test_full_grad_agrees_with_pytorch_grad_cam_on_what_both_count() -> None:
    """Theirs resizes by another interpolation, so maps correlate and do not coincide."""
    ours, theirs = FullGrad()(pooled(), batch(3)), reference(pooled(), "FullGrad", "features")
    for own, other in zip(ours, theirs, strict=True):
        assert float(torch.corrcoef(torch.stack([own.flatten(), other.flatten()]))[0, 1]) > 0.98


class Quadratic(nn.Module):
    """a' Q a / 2 + b' a of the picture's pixels a, with the constant 0 as the other class."""

    def __init__(self) -> None:
        super().__init__()
        half = torch.randn(48, 48)
        self.identity = nn.Conv2d(3, 3, 1, bias=False)
        self.q, self.b = nn.Parameter(half + half.T), nn.Parameter(torch.randn(48))
        with torch.no_grad():
            self.identity.weight.copy_(torch.eye(3)[:, :, None, None])

    def forward(self, x: Tensor) -> Tensor:
        a = self.identity(x).flatten(1)
        value = ((a @ self.q) * a).sum(1) / 2 + a @ self.b
        return torch.stack([value, torch.zeros_like(value)], 1)


def test_shapley_values_of_a_quadratic_answer_add_up_to_it() -> None:
    torch.manual_seed(0)
    model, pictures = Model("quadratic", Quadratic(), cam_layer="identity"), batch(2, size=4).aimed(torch.zeros(2))
    activity, weights = corrected(model, pictures, "identity", "logit")
    assert torch.allclose((activity * weights).flatten(1).sum(1), model(pictures.images)[:, 0], rtol=1e-4)
    plain = tap(model, pictures, "identity", "logit")
    assert not torch.allclose((activity * plain.gradients).flatten(1).sum(1), model(pictures.images)[:, 0], rtol=1e-2)
