"""What adversarial, region and adaptive-path methods promise: independence, tidiness, cost, sign."""

from __future__ import annotations

from typing import Any

import networks
import pytest
import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.attribute import attribute
from heatproof.methods.agi import AGI
from heatproof.methods.attexplore import AttEXplore
from heatproof.methods.blur_ig import BlurIG
from heatproof.methods.boundary_ig import BoundaryIG
from heatproof.methods.extremal_perturbation import ExtremalPerturbation
from heatproof.methods.guided_ig import GuidedIG
from heatproof.methods.hsic import HSIC
from heatproof.methods.idgi import IDGI
from heatproof.methods.ig2 import IG2
from heatproof.methods.isa import ISA
from heatproof.methods.lima import LIMA
from heatproof.methods.lime import LIME
from heatproof.methods.local_attribution import LocalAttribution
from heatproof.methods.mfaba import MFABA
from heatproof.methods.occlusion import SlidingOcclusion
from heatproof.methods.rise import RISE
from heatproof.methods.sobol import Sobol
from heatproof.methods.xrai import XRAI
from heatproof.occlusion.occlusion import Occlusion
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.types import Batch, Method, Model

EXACT: list[Any] = [
    GuidedIG(steps=6),
    BlurIG(steps=6),
    XRAI(steps=4),
    LocalAttribution(classes=4, steps=2),
    AttEXplore(steps=2, draws=4),
    ISA(rounds=3, steps=2),
    LIME(samples=24, segmenter=Grid(4)),
    SlidingOcclusion(positions=4, window=0.3),
    RISE(masks=24),
    Sobol(samples=4, cells=3),
    IDGI(steps=6),
    ExtremalPerturbation(steps=5, cells=8, mode="both"),
]
AT_MOST: list[Any] = [
    AGI(classes=4, steps=3),
    MFABA(steps=6),
    BoundaryIG(steps=6, attack_steps=8, bisections=4),
    IG2(steps=4),
    HSIC(Occlusion(segmenter=Grid(3)), samples=24),
    LIMA(Occlusion(segmenter=Grid(3))),
]
PUBLISHED: list[Any] = [
    GuidedIG(steps=4, variant="lmb"),
    BoundaryIG(steps=4, attack_steps=4, variant="lmb"),
    MFABA(steps=4, variant="lmb"),
    AttEXplore(steps=2, draws=3, variant="lmb"),
    ISA(rounds=3, steps=2, variant="lmb"),
]


def names(method: Any) -> str:
    return f"{type(method).__name__}-{getattr(method, 'variant', 'clean')}"


@pytest.fixture(autouse=True)
def _fixed_batches() -> Any:
    with engine.use(engine.Engine(always=engine.REFERENCE)):
        yield


@pytest.mark.parametrize("method", EXACT + AT_MOST + PUBLISHED, ids=names)
@pytest.mark.parametrize("make", [networks.small_cnn, networks.small_vit], ids=["cnn", "vit"])
def test_maps_do_not_depend_on_batch_mates(method: Method, make: Any) -> None:
    model, batch = make(), networks.batch(3)
    together = attribute(model, batch, method).maps
    alone = torch.cat([attribute(model, batch.select([row]), method).maps for row in (2, 0, 1)])[[1, 2, 0]]
    assert together.abs().max() > 0
    assert (together - alone).abs().max() <= 1e-5 * together.abs().max()


@pytest.mark.parametrize("method", EXACT + AT_MOST + PUBLISHED, ids=names)
def test_never_negative_if_it_says_so(method: Any) -> None:
    maps = attribute(networks.small_resnet(), networks.batch(2), method).maps
    assert method.signed or float(maps.min()) >= 0


@pytest.mark.parametrize("method", EXACT + AT_MOST, ids=names)
def test_the_model_is_as_before(method: Method) -> None:
    model, batch = networks.small_resnet(), networks.batch(2)
    model.network.layers[0].train()
    model.network.fc.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    flags = [(m.training, len(m._forward_hooks)) for m in model.network.modules()]
    wanted = [p.requires_grad for p in model.network.parameters()]
    images = batch.images.clone()
    attribute(model, batch, method)
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())
    assert [(m.training, len(m._forward_hooks)) for m in model.network.modules()] == flags
    assert [p.requires_grad for p in model.network.parameters()] == wanted
    assert all(p.grad is None for p in model.network.parameters())
    assert torch.equal(batch.images, images)


def counted(model: Model) -> dict[str, int]:
    """Rows through the network from now on, each way."""
    counts = {"forward": 0, "backward": 0}

    def back(slope: Tensor) -> None:
        counts["backward"] += len(slope)

    def hear(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        counts["forward"] += len(output)
        if output.requires_grad:
            output.register_hook(back)

    model.network.register_forward_hook(hear)
    return counts


@pytest.mark.parametrize("method", EXACT + AT_MOST, ids=names)
def test_cost_is_what_it_says(method: Any) -> None:
    """Eight images fill the micro-batches of eight, so every row counted is a row of work."""
    model, batch = networks.small_cnn(), networks.batch(8)
    counts = counted(model)
    attribute(model, batch, method)
    if isinstance(method, AGI | LocalAttribution):
        counts["forward"] -= 8  # one picture (padded) once, to count the classes
    cost = method.cost()
    if method in AT_MOST:
        assert 0 < counts["forward"] <= 8 * cost.forward
        assert min(cost.backward, 1) <= counts["backward"] <= 8 * cost.backward
    else:
        assert (counts["forward"], counts["backward"]) == (8 * cost.forward, 8 * cost.backward)


class Greenish(nn.Module):
    """Answers with the colour of the most colourful places: red, green or blue."""

    def forward(self, x: Tensor) -> Tensor:
        excess = x - (x.sum(1, keepdim=True) - x) / 2
        return 60 * torch.relu(excess - 0.2).mean((2, 3)) + 0.5 * excess.mean((2, 3))


def planted() -> tuple[Model, Batch]:
    """Grey noise with one green square; the answer is green because of the square alone."""
    generator = torch.Generator().manual_seed(7)
    images = (0.5 + 0.05 * torch.randn(3, 1, 32, 32, generator=generator)).clamp(0.2, 0.8).repeat(1, 3, 1, 1)
    regions = torch.zeros(3, 32, 32, dtype=torch.bool)
    for row, (top, left) in enumerate([(4, 4), (16, 8), (8, 20)]):
        regions[row, top : top + 8, left : left + 8] = True
    green = torch.tensor([0.2, 0.8, 0.25]).view(1, 3, 1, 1)
    images = torch.where(regions[:, None], green + (images - 0.5), images)
    batch = Batch(images.clamp(0, 1), torch.ones(3, dtype=torch.int64), ("a", "b", "c"), regions)
    return Model("greenish", Greenish()), batch


STRONG: list[Any] = [
    GuidedIG(steps=20, baseline="mean"),
    BlurIG(steps=20),
    XRAI(steps=10),
    LocalAttribution(classes=3, steps=4),
    AttEXplore(steps=4, draws=6),
    ISA(rounds=8, steps=4),
    LIME(samples=200, segmenter=Grid(8)),
    SlidingOcclusion(),
    RISE(masks=400),
    AGI(classes=2, steps=4),
    MFABA(),
    BoundaryIG(),
    Sobol(samples=8),
    HSIC(Occlusion(segmenter=Grid(8)), samples=300),
    IDGI(steps=20, baseline="mean"),
    IG2(steps=10),
    LIMA(Occlusion(segmenter=Grid(4))),
    ExtremalPerturbation(steps=60, cells=16),
]


@pytest.mark.parametrize("method", STRONG, ids=names)
def test_evidence_that_was_planted_is_found_with_the_right_sign(method: Method) -> None:
    model, batch = planted()
    assert (engine.forward(model, batch.images).argmax(1) == batch.targets).all()
    maps = attribute(model, batch, method).maps
    regions = batch.regions
    inside = torch.stack([m[r].mean() for m, r in zip(maps, regions, strict=True)])
    outside = torch.stack([m[~r].mean() for m, r in zip(maps, regions, strict=True)])
    assert (inside > 0).all()
    assert (inside > outside).all()
