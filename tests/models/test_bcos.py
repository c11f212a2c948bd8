"""B-cos networks: linear in what they see, exactly; small ones of our own and the published layouts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from networks import batch, pictures
from torch import Tensor, nn

from heatproof import engine, models, testing
from heatproof.data.mosaic import Mosaic
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadModel, NotApplicable, UnknownName
from heatproof.methods.bcos import BCos
from heatproof.methods.lrp import LRP
from heatproof.models import bcos_v2, embedded
from heatproof.models.bcos import BCosConv2d, BCosNet, Encoding, UncentredNorm2d
from heatproof.types import Batch, Model


def by_the_book(layer: BCosConv2d, maps: Tensor) -> Tensor:
    """Patch by patch: ŵ·x · |cos(x, ŵ)|^(B-1), the largest of each unit's competitors."""
    conv = layer.linear
    patches = F.unfold(maps, conv.kernel_size, padding=conv.padding, stride=conv.stride).double()
    weights = F.normalize(conv.weight.flatten(1).double(), dim=1)
    linear = torch.einsum("of,bfp->bop", weights, patches)
    linear = linear.unflatten(1, (-1, layer.max_out)).amax(2)
    cosine = linear / (patches.square().sum(1, keepdim=True) + 1e-6).sqrt()
    return linear * cosine.abs() ** (layer.b - 1)


@pytest.mark.parametrize(("b", "max_out", "stride"), [(2.0, 1, 1), (2.0, 2, 2), (1.0, 2, 1), (1.5, 1, 2)])
def test_a_layer_does_what_the_paper_says(b: float, max_out: int, stride: int) -> None:
    torch.manual_seed(0)
    layer = BCosConv2d(3, 5, 3, stride, 1, b, max_out)
    maps = torch.randn(2, 3, 9, 9)
    found = layer(maps)
    assert torch.allclose(found.flatten(2).double(), by_the_book(layer, maps), atol=1e-5)
    assert torch.allclose(layer(3 * maps), 3 * found, atol=1e-4), "a B-cos layer scales with its input"


def test_a_layer_never_exceeds_its_inputs_norm() -> None:
    torch.manual_seed(1)
    layer = BCosConv2d(4, 8, 1)
    maps = torch.randn(2, 4, 5, 5)
    assert bool((layer(maps).abs() <= maps.norm(dim=1, keepdim=True) + 1e-5).all())


def test_the_norm_shifts_nothing() -> None:
    norm = UncentredNorm2d(4)
    norm.train()
    for _ in range(60):
        norm(5 * torch.randn(8, 4, 6, 6) + 1)
    norm.eval()
    assert torch.allclose(norm.running_var, torch.full((4,), 25.0), rtol=0.2)
    maps = torch.randn(2, 4, 3, 3)
    assert torch.equal(norm(torch.zeros_like(maps)), torch.zeros_like(maps))
    assert torch.allclose(norm(2 * maps), 2 * norm(maps))


def test_the_encoding_keeps_dark_pixels() -> None:
    assert Encoding()(torch.zeros(1, 3, 1, 1)).flatten().tolist() == [0, 0, 0, 1, 1, 1]


def own() -> tuple[Model, Batch]:
    return models.load("embedded:object_bcos"), Mosaic(per_class=1).batch(range(6))


def published() -> tuple[Model, Batch]:
    torch.manual_seed(0)
    network = bcos_v2.BCosResNet((1, 1), bottleneck=True, classes=10, width=8)
    return Model("tiny", network), batch(3)


@pytest.mark.parametrize("case", [own, published])
def test_contributions_sum_to_the_logit(case: object) -> None:
    model, shown = case()  # type: ignore[operator]
    logits = model(shown.images).detach().gather(1, shown.targets[:, None])[:, 0]
    contributions = BCos()(model, shown).sum((1, 2))
    assert torch.allclose(contributions, logits, rtol=1e-4, atol=1e-6 * float(logits.abs().max()))


def test_outside_explanation_mode_gradients_are_the_true_ones() -> None:
    model, shown = own()
    few = shown.select([0, 1])
    slopes, values = engine.gradient(model, few.images, few.targets)
    with model.network.explanation_mode():  # type: ignore[operator]
        inside, same = engine.gradient(model, few.images, few.targets)
    after, _ = engine.gradient(model, few.images, few.targets)
    assert torch.equal(values, same), "the mode changes gradients, never answers"
    assert not torch.allclose(slopes, inside)
    assert torch.equal(slopes, after)
    step = 1e-3 * torch.sign(slopes)
    gain = model(few.images + step).gather(1, few.targets[:, None])[:, 0] - values
    assert torch.allclose(gain.detach(), (slopes * step).sum((1, 2, 3)), rtol=0.2)


def test_explanation_mode_ends_also_after_an_error() -> None:
    network = BCosNet()
    with network.explanation_mode():
        assert network.classifier.explaining
    with pytest.raises(RuntimeError), network.explanation_mode():
        network(torch.zeros(1, 1, 1, 1))
    assert not any(getattr(part, "explaining", False) for part in network.modules())


def test_the_embedded_network_knows_its_objects() -> None:
    model = models.load("embedded:object_bcos")
    shown = TwoFactor("held_out", 100).batch(range(100))
    right = engine.forward(model, shown.images).argmax(1) == shown.labels["object"]
    assert right.float().mean() >= 0.9
    assert embedded.about("object_bcos")["accuracy"]["composite"] >= 0.9
    assert not any(isinstance(getattr(part, "bias", None), nn.Parameter) for part in model.network.modules())
    failed = [str(verdict) for verdict in testing.check_model(model, shown.images[:3]) if not verdict.holds]
    assert failed == []


def test_lrp_says_that_it_does_not_cover_b_cos_layers() -> None:
    model, shown = own()
    with pytest.raises(NotApplicable, match="B-cos"):
        LRP()(model, shown.select([0]))


def test_a_published_checkpoint_loads_from_disk(tmp_path: Path) -> None:
    torch.manual_seed(3)
    network = bcos_v2.empty("resnet18", 12)
    stored = dict(network.state_dict())
    for name in [name for name in stored if name.endswith("running_var")]:  # what their norms carry along
        stored[name.replace("running_var", "running_mean")] = torch.randn_like(stored[name])
        stored[name.replace("running_var", "num_batches_tracked")] = torch.tensor(7)
    path = tmp_path / "resnet_18-68b4160fff.pth"
    torch.save(stored, path)
    model = models.load(f"bcos:resnet18@{path}")
    images = pictures(2, size=64)
    network.eval()
    with torch.no_grad():
        assert torch.equal(model(images), network(images))
    assert model.name == f"bcos:resnet18@{path}"
    with pytest.raises(BadModel, match="does not fit"):
        models.load(f"bcos:resnet34@{path}")
    torch.save({"weight": torch.zeros(2)}, path)
    with pytest.raises(BadModel, match="without their classifier"):
        models.load(f"bcos:resnet18@{path}")
    with pytest.raises(BadModel, match="not downloaded"):
        models.load("bcos:resnet18")
    with pytest.raises(UnknownName, match="resnet50"):
        models.load("bcos:resnet5@random")


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("resnet18", 11.69),
        ("resnet34", 21.80),
        ("resnet50", 25.54),
        ("resnet101", 44.50),
        ("resnet152", 60.13),
    ],
)
def test_networks_have_as_many_weights_as_published(name: str, millions: float) -> None:
    with torch.device("meta"):
        network = bcos_v2.empty(name)
    assert round(sum(p.numel() for p in network.parameters()) / 1e6, 2) == pytest.approx(millions, abs=0.006)


def test_the_vgg_layout() -> None:
    with torch.device("meta"):
        names = list(bcos_v2.empty("vgg11_bnu").state_dict())
    convolutions = [0, 3, 6, 8, 11, 13, 16, 18]
    assert [n for n in names if n.startswith("features") and "linear" in n] == [
        f"features.{i}.linear.weight" for i in convolutions
    ]
    assert names[-3:] == [f"classifier.{i}.linear.weight" for i in range(3)]


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "vgg11_bnu"])
def test_published_layouts_have_b_2_and_pool_by_the_mean(name: str) -> None:
    with torch.device("meta"):
        parts = list(bcos_v2.empty(name).modules())
    assert {part.b for part in parts if isinstance(part, BCosConv2d)} == {2.0}
    assert not any(isinstance(part, nn.MaxPool2d) for part in parts), "a maximum is not linear in what it sees"
    pools = [(p.kernel_size, p.stride, p.padding) for p in parts if isinstance(p, nn.AvgPool2d)]
    assert pools == ([(2, 2, 0)] * 5 if name.startswith("vgg") else [(3, 2, 1)])
