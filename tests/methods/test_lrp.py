"""Relevance propagation against zennit's own canonizers, and what must be conserved."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from networks import MEAN, STD, batch, linear, small_cnn, small_resnet
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods.canonizing import merges, merging
from heatproof.methods.lrp import LRP
from heatproof.models.torchvision_repair import import_torchvision
from heatproof.types import Model

torchvision = import_torchvision("the tests")


def zennit_map(model: Model, composite: str, canonizers: list[Any], **fields: Any) -> Tensor:
    from zennit.attribution import Gradient
    from zennit.composites import COMPOSITES

    pictures = batch(2)
    start = F.one_hot(pictures.targets, 10).float()
    with Gradient(model.network, COMPOSITES[composite](canonizers=canonizers, **fields)) as attributor:
        _, relevance = attributor(model.normalised(pictures.images), start)
    return relevance.detach()


def seeded(network: nn.Module) -> Model:
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 1.5)  # type: ignore[union-attr]
    return Model("seeded", network, MEAN, STD)


def resnet(block: str) -> Model:
    torch.manual_seed(0)
    source = torchvision.models.resnet
    return seeded(source.ResNet(getattr(source, block), [1, 1, 1, 1], num_classes=10))


def vgg() -> Model:
    torch.manual_seed(0)
    features = torchvision.models.vgg.make_layers([8, "M", 12, "M", 16, "M"], batch_norm=True)
    return seeded(nn.Sequential(features, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10)))


@pytest.mark.parametrize(
    ("composite", "block"),
    [
        ("epsilon_plus_flat", "BasicBlock"),
        ("epsilon_plus_flat", "Bottleneck"),
        ("epsilon_plus", "BasicBlock"),
        ("epsilon_alpha2_beta1", "BasicBlock"),
    ],
)
def test_agrees_with_zennits_own_canonizer_for_resnets(composite: Any, block: str) -> None:
    from zennit.torchvision import ResNetCanonizer

    model = resnet(block)
    theirs = zennit_map(model, composite, [ResNetCanonizer()])
    ours = LRP(composite=composite, upright=False).channels(model, batch(2))
    assert float((ours - theirs).abs().max()) < 1e-3 * float(theirs.abs().max())
    plain = zennit_map(model, composite, [])
    without = LRP(composite=composite, canonizer="none", upright=False).channels(model, batch(2))
    assert torch.allclose(without, plain, rtol=1e-3, atol=1e-5 * float(plain.abs().max()))
    assert float((ours - without).abs().max()) > 0.1 * float(theirs.abs().max())


def test_agrees_with_zennits_own_canonizer_for_vggs() -> None:
    from zennit.torchvision import VGGCanonizer

    model = vgg()
    theirs = zennit_map(model, "epsilon_plus_flat", [VGGCanonizer()])
    ours = LRP(upright=False).channels(model, batch(2))
    assert float((ours - theirs).abs().max()) < 1e-3 * float(theirs.abs().max())


def test_the_box_rule_knows_the_pictures_range() -> None:
    model = small_cnn()
    low, high = (model.normalised(torch.full((1, 3, 32, 32), edge)) for edge in (0.0, 1.0))
    theirs = zennit_map(small_cnn(), "epsilon_gamma_box", [], low=low, high=high)
    ours = LRP(composite="epsilon_gamma_box", upright=False).channels(model, batch(2))
    assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-5 * float(theirs.abs().max()))


def test_the_epsilon_rule_conserves_the_answer() -> None:
    """Started from the logit, relevance adds up to the logit where no bias takes a share."""
    pictures = batch(3)
    for model in (linear(), small_cnn(bias=False)):
        maps = LRP(composite="epsilon", start="logit", epsilon=1e-9)(model, pictures)
        with torch.no_grad():
            logits = model(pictures.images).gather(1, pictures.targets[:, None])[:, 0]
        assert torch.allclose(maps.sum((1, 2)), logits, rtol=1e-3)


def test_relevance_is_conserved_at_residual_sums_and_means() -> None:
    pictures = batch(2)
    kept = LRP(biases=False, upright=False)(small_resnet(), pictures).sum((1, 2))
    # z-plus, flat and proportional shares all conserve; only the head's epsilon rule (1 in) can lose a little
    assert torch.allclose(kept, torch.ones(2), atol=0.05)


def test_epsilon_on_a_linear_model_is_the_input_times_the_weight() -> None:
    model, pictures = linear(), batch(2)
    weights = model.network.fc.weight.detach()[pictures.targets].view(-1, 3, 32, 32)
    maps = LRP(composite="epsilon", start="logit", epsilon=1e-9)(model, pictures)
    assert torch.allclose(maps, (weights * pictures.images).sum(1), rtol=1e-3, atol=1e-6)


def test_a_negative_logit_turns_no_map_that_is_kept_upright() -> None:
    """On f = w·x, positive relevance must stay where w·x is positive, whatever the sign of f."""
    model, pictures = linear(), batch(3)
    with torch.no_grad():
        lowest = pictures.aimed(model(pictures.images).argmin(1))
        logits = model(pictures.images).gather(1, lowest.targets[:, None])[:, 0]
    assert bool((logits < 0).all())
    weights = model.network.fc.weight.detach()[lowest.targets].view(-1, 3, 32, 32)
    parts = (weights * pictures.images).sum(1)
    for start, size in (("one_hot", logits.abs()), ("logit", 1), ("abs_logit", 1)):
        upright = LRP(composite="epsilon", start=start, epsilon=1e-9)(model, lowest)  # type: ignore[arg-type]
        wanted = parts / (size if isinstance(size, int) else size.view(-1, 1, 1))
        assert torch.allclose(upright, wanted, rtol=1e-3, atol=1e-6)
    raw = LRP(composite="epsilon", epsilon=1e-9, upright=False)(model, lowest)
    assert torch.allclose(raw, parts / logits.view(-1, 1, 1), rtol=1e-3, atol=1e-6), "divided by a negative number"


def test_the_start_scales_the_map() -> None:
    model, pictures = small_cnn(), batch(1)
    with torch.no_grad():
        model.network.head[3].bias[0] = -5.0
        value = float(model(pictures.images)[0, 0])
    assert value < 0
    one, logit, size = (
        LRP(start=start, upright=False)(model, pictures)  # type: ignore[arg-type]
        for start in ("one_hot", "logit", "abs_logit")
    )
    assert torch.allclose(logit, one * value, rtol=1e-5)
    assert torch.allclose(size, -logit)


class NormFirst(nn.Module):
    """Norm, functional ReLU, convolution: by order of registration a norm seems to follow a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 6, 3), nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = F.relu(self.conv2(x), inplace=True)
        return self.fc(self.bn2(x).mean((2, 3)))


def test_a_norm_is_merged_only_into_the_layer_whose_output_it_gets() -> None:
    model = Model("norm_first", NormFirst())
    assert merges(model, batch(1).images) == [(["conv1"], "bn1")]
    resnet = small_resnet()
    assert len(merges(resnet, batch(1).images)) == sum(
        isinstance(module, nn.BatchNorm2d) for module in resnet.network.modules()
    )


class TwoReaders(nn.Module):
    """A convolution read by its norm and by somebody else: merging the two would change the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Linear(6, 10)
        self.bn.running_var.fill_(9.0)  # type: ignore[union-attr]

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return self.fc((self.bn(x) + 2 * x.relu()).mean((2, 3)))


def test_a_merge_that_would_change_the_answer_is_refused() -> None:
    model = Model("two_readers", TwoReaders())
    with pytest.raises(NotApplicable, match="canonizer='none'"):
        LRP()(model, batch(1))
    assert float(LRP(canonizer="none")(model, batch(1)).abs().max()) > 0


def test_a_merge_is_exact_whatever_the_norms_epsilon() -> None:
    model, pictures = small_resnet(), batch(2)
    norms = [module for module in model.network.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.eps = 0.1
    with torch.no_grad():
        before = model(pictures.images)
        applied = merging(merges(model, pictures.images)).apply(model.network)
        merged = model(pictures.images)
        for merge in applied:
            merge.remove()
        assert torch.equal(model(pictures.images), before)
    assert torch.allclose(merged, before, rtol=1e-4, atol=1e-5)
    assert all(norm.eps == 0.1 for norm in norms)
