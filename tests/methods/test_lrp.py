"""Relevance propagation against zennit's own canonizers, and what must be conserved."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F
from networks import MEAN, STD, ResidualBlock, batch, linear, small_cnn, small_resnet
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods._support.canonization import merges, merging
from heatproof.methods._support.rule_coverage import coverage
from heatproof.methods.lrp import LRP, Rules
from heatproof.models import embedded
from heatproof.models._support.torchvision_repair import import_torchvision
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


class Registered(nn.Module):
    """The same function, its layers registered in one order or another."""

    def __init__(self, backwards: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        parts = {"one": nn.Conv2d(3, 6, 3, padding=1), "two": nn.Conv2d(6, 6, 3), "head": nn.Linear(6, 10)}
        parts["head"].bias.data = torch.linspace(-1, 1, 10)  # logits of both signs
        for name in reversed(parts) if backwards else parts:
            self.add_module(name, parts[name])

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.two(F.relu(self.one(x)))).mean((2, 3)))


@pytest.mark.parametrize("composite", get_args(Rules))
def test_the_order_of_running_counts_and_not_the_order_of_registering(composite: Any) -> None:
    pictures = batch(8)
    usual, backwards = (Model("order", Registered(turned), MEAN, STD) for turned in (False, True))
    with torch.no_grad():
        logits = usual(pictures.images).gather(1, pictures.targets[:, None])
    assert bool((logits < 0).any())
    assert bool((logits > 0).any())
    maps = LRP(composite)(usual, pictures)
    assert torch.equal(maps, LRP(composite)(backwards, pictures))
    # The head is the last, and its epsilon rule divides by the logit.
    assert torch.equal(maps, LRP(composite, upright=False)(usual, pictures) * logits.sign()[:, :, None])
    alike = pictures.showing(pictures.images[:1].expand_as(pictures.images))
    apart = LRP(composite)(backwards, alike)
    assert all(not torch.allclose(apart[0], other, rtol=1e-2) for other in apart[1:])


@pytest.mark.parametrize("composite", get_args(Rules))
def test_a_network_of_one_layer_is_kept_upright(composite: Any) -> None:
    torch.manual_seed(0)
    model, pictures = Model("one layer", nn.Sequential(nn.Flatten(), nn.Linear(3072, 10, bias=False))), batch(8)
    sums = LRP(composite)(model, pictures).sum((1, 2))
    with torch.no_grad():
        logits = model(pictures.images).gather(1, pictures.targets[:, None])[:, 0]
    assert bool((logits < 0).any())
    # The flat rule spreads the start evenly, whatever the logit; the epsilon rule conserves it with the logit's sign.
    assert torch.equal(sums.sign(), torch.ones_like(sums) if composite.endswith("flat") else logits.sign())


class Linearly(nn.Module):
    """A convolution whose inputs no rectifier has made positive, and one whose inputs are."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3), nn.Conv2d(6, 6, 3)
        self.relu, self.head = nn.ReLU(), nn.Linear(6 * 26 * 26, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.third(self.relu(self.second(self.first(x)))).flatten(1))


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("composite", ["epsilon_plus_flat", "epsilon_plus", "epsilon_plus_box"])
def test_skipping_negative_inputs_that_are_not_there_changes_no_bit(
    composite: Any, biases: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zennit.core import BasicHook
    from zennit.rules import ZPlus

    torch.manual_seed(0)
    network, requested, backward = Linearly(), {}, BasicHook.backward

    def counted(hook: BasicHook, module: nn.Module, *message: Any) -> Any:
        requested[module] = len(hook.input_modifiers)
        return backward(hook, module, *message)

    model, pictures = Model("linearly", network, MEAN, STD), batch(2)
    with monkeypatch.context() as patch:
        patch.setattr(BasicHook, "backward", counted)
        ours = LRP(composite, biases=biases)(model, pictures)
    assert (requested[network.second], requested[network.third]) == (2, 1)
    monkeypatch.setattr("heatproof.methods.lrp.plus_rule", lambda zero: ZPlus(zero_params=zero))
    assert torch.equal(ours, LRP(composite, biases=biases)(model, pictures))


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
    """A convolution read by its norm and by another layer: merging the two would change the answer."""

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


class TwoLayers(nn.Module):
    """Two convolutions with whatever is wanted between them and the head."""

    def __init__(self, between: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv1, self.conv2, self.fc = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 10)
        with torch.no_grad():
            self.conv1.weight.mul_(20)  # where activations bend and saturate
        self.between = between

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.between(self.conv2(self.between(self.conv1(x)))).mean((2, 3)))


ACTIVATIONS: list[tuple[Any, nn.Module]] = [
    (F.relu, nn.ReLU()),
    (F.relu6, nn.ReLU6()),
    (lambda x: x.clamp(0, 6), nn.ReLU6()),
    (F.gelu, nn.GELU()),
    (lambda x: F.silu(x, inplace=True), nn.SiLU()),
    (F.hardswish, nn.Hardswish()),
    (lambda x: F.leaky_relu_(x, 0.2), nn.LeakyReLU(0.2)),
    (torch.tanh, nn.Tanh()),
    (Tensor.sigmoid, nn.Sigmoid()),
    (F.elu, nn.ELU()),
]


@pytest.mark.parametrize("canonizer", ["auto", "none"])
@pytest.mark.parametrize(("function", "layer"), ACTIVATIONS, ids=lambda part: type(part).__name__)
def test_an_activation_is_passed_whether_it_is_a_function_or_a_layer(
    function: Any, layer: nn.Module, canonizer: Any
) -> None:
    method = LRP(canonizer=canonizer)
    maps, wanted = (method(Model("two", TwoLayers(one), MEAN, STD), batch(2)) for one in (function, layer))
    assert float(wanted.abs().max()) > 0
    assert torch.allclose(maps, wanted, rtol=1e-4, atol=1e-6 * float(wanted.abs().max()))


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight[:, :, None, None])


class Standardised(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight - self.weight.mean((1, 2, 3), keepdim=True))


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Conv2d(8, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.fc(F.adaptive_avg_pool2d(x, 1)))


class Scaled(nn.Module):
    """A product with a factor of its own, learned or not."""

    def __init__(self, by: Any, learned: bool = True) -> None:
        super().__init__()
        self.by = by
        if learned:
            self.factor: Tensor = nn.Parameter(torch.rand(8))
        else:
            self.register_buffer("factor", torch.rand(8))

    def forward(self, x: Tensor) -> Tensor:
        return self.by(x, self.factor.view(1, -1, 1, 1))


REFUSED: list[tuple[Any, str]] = [
    (Own(), "conv2d in 'between' with weights that are no layer's own"),
    (lambda x: F.linear(x.movedim(1, -1), torch.eye(8)).movedim(-1, 1), "linear in its forward"),
    (lambda x: torch.einsum("bchw,cd->bdhw", x, torch.eye(8)), "einsum in its forward"),
    (Standardised(8, 8, 1), "conv2d in 'between'"),
    (Gate(), "multiplies or divides two branches in 'between'"),
    (lambda x: x / x.amax((1, 2, 3), keepdim=True), "multiplies or divides two branches"),
    (lambda x: torch.div(torch.ones(()), 1 + x), "divides by what depends on the picture"),
    (lambda x: x * x.sigmoid(), "multiplies or divides two branches"),
    (Scaled(lambda x, factor: x * factor), "by a learned factor in 'between'"),
    (Scaled(lambda x, factor: x.div_(factor.exp())), "by a learned factor in 'between'"),
    (lambda x: x + torch.linalg.vector_norm(x, dim=1, keepdim=True), "vector_norm in its forward"),
    (lambda x: torch.special.log_softmax(x, 1), "log_softmax in its forward"),
    (nn.GroupNorm(2, 8), "group_norm in 'between'"),
    (nn.LayerNorm([8, 30, 30]), "layer_norm in 'between'"),
    (nn.LocalResponseNorm(2), "local_response_norm in 'between'"),
    (nn.InstanceNorm2d(8), "instance_norm in 'between'"),
    (lambda x: F.batch_norm(x, torch.zeros(8), torch.ones(8)), "batch_norm in its forward"),
    (lambda x: x.flatten(1).softmax(1).view_as(x), "softmax in its forward"),
    (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), "the attention in this network"),
    (lambda x: x**2, "pow in its forward"),
    (nn.Conv2d(8, 8, 1), "runs its layer 'between' 2 times"),
    (nn.AvgPool2d(3, 1, 1), "runs its layer 'between' 2 times"),
]


@pytest.mark.parametrize(("between", "message"), REFUSED, ids=lambda part: part if isinstance(part, str) else "")
@pytest.mark.parametrize("canonizer", ["auto", "none"])
def test_what_no_rule_covers_is_refused(between: Any, message: str, canonizer: Any) -> None:
    model = Model("two", TwoLayers(between), MEAN, STD)
    wanted = [(parameter.requires_grad, parameter.grad) for parameter in model.network.parameters()]
    for _ in range(2):  # and is still refused when called again
        with pytest.raises(NotApplicable, match=r"take (integrated_gradients|attn_lrp)") as refusal:
            LRP(canonizer=canonizer)(model, batch(1))
        assert message in str(refusal.value)
    assert [(parameter.requires_grad, parameter.grad) for parameter in model.network.parameters()] == wanted
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.network.modules())


def test_a_fixed_factor_is_allowed() -> None:
    model = Model("fixed", TwoLayers(Scaled(torch.mul, learned=False)), MEAN, STD)
    assert coverage(model, batch(1).images).fault == ""


class Pooled(nn.Module):
    """A convolution, a mean over places in the wanted spelling, and the head."""

    def __init__(self, mean: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.fc, self.mean = nn.Conv2d(3, 8, 3), nn.Linear(8, 10), mean

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.mean(F.relu(self.conv(x))))


MEANS: dict[str, Any] = {
    "both": lambda x: x.mean((2, 3)),
    "by_keyword": lambda x: torch.mean(x, dim=[-2, -1], keepdim=True).flatten(1),
    "flattened": lambda x: x.flatten(2).mean(-1),
    "tokens": lambda x: x.flatten(2).transpose(1, 2).mean(1),
    "channels_last": lambda x: x.movedim(1, -1).mean((1, 2)),
    "one_by_one": lambda x: x.mean(3).mean(2),
    "sum_divided": lambda x: x.sum((2, 3)) / (x.shape[2] * x.shape[3]),
    "sum_scaled": lambda x: (1 / 900) * torch.sum(x.flatten(2), 2),
    "sum_divided_in_place": lambda x: torch.sum(x, (2, 3)).div_(other=900),
    "pooled_in_a_row": lambda x: F.adaptive_avg_pool1d(x.flatten(2), 1).flatten(1),
}


@pytest.mark.parametrize("composite", ["epsilon_plus_flat", "epsilon"])
@pytest.mark.parametrize("mean", MEANS)
def test_a_mean_over_places_shares_out_however_it_is_spelt(mean: str, composite: Any) -> None:
    spelt, pooled = Pooled(MEANS[mean]), Pooled(lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1))
    maps, wanted = (LRP(composite=composite)(Model("pooled", one, MEAN, STD), batch(2)) for one in (spelt, pooled))
    assert float(wanted.abs().max()) > 0
    assert torch.allclose(maps, wanted, rtol=1e-2, atol=1e-3 * float(wanted.abs().max()))


class Normalising(nn.Module):
    """A network that shifts and scales its input itself, in the wanted spelling."""

    def __init__(self, network: nn.Module, scaled: Any) -> None:
        super().__init__()
        self.network, self.scaled = network, scaled
        self.register_buffer("mean", torch.tensor(MEAN).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(STD).view(1, -1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.network(self.scaled(x - self.mean, self.std))


SCALES: dict[str, Any] = {
    "divided": lambda x, std: x / std,
    "multiplied": lambda x, std: torch.mul(1 / std, x),
    "in_place": lambda x, std: x.div_(std),
}


@pytest.mark.parametrize("spelling", SCALES)
def test_a_network_that_normalises_itself_has_the_same_relevance(spelling: str) -> None:
    plain = Pooled(lambda x: x.mean((2, 3)))
    own = Model("own", Normalising(plain, SCALES[spelling]), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    maps, wanted = (LRP()(model, batch(2)) for model in (own, Model("plain", plain, MEAN, STD)))
    assert torch.allclose(maps, wanted, rtol=1e-4, atol=1e-6 * float(wanted.abs().max()))


def test_a_network_no_hook_reaches_is_refused() -> None:
    network = torch.jit.trace(small_cnn().network, torch.rand(1, 3, 32, 32))
    with pytest.raises(NotApplicable, match="compiled code"):
        LRP()(Model("traced", network), batch(1))
    with pytest.raises(NotApplicable, match="no convolution or linear layer"):
        LRP()(Model("colours", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())), batch(1))


def test_the_watching_is_done_once() -> None:
    model, pictures = small_resnet(), batch(2)
    passes: list[int] = []
    model.network.register_forward_hook(lambda module, inputs, output: passes.append(len(output)))
    LRP()(model, pictures)
    passes.clear()
    LRP("epsilon", canonizer="none")(model, pictures)
    LRP()(model, pictures.aimed(pictures.targets + 1))
    assert len(passes) == 2


class SeparateReLUs(nn.Module):
    def __init__(self, block: ResidualBlock) -> None:
        super().__init__()
        self.block, self.first, self.last = block, nn.ReLU(), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out = self.first(self.block.bn1(self.block.conv1(x)))
        return self.last(self.block.bn2(self.block.conv2(out)) + self.block.shortcut(x))


@pytest.mark.parametrize("canonizer", ["auto", "none"])
def test_a_relu_used_twice_is_as_good_as_two(canonizer: Any) -> None:
    shared, separate = small_resnet(), small_resnet()
    separate.network.layers = nn.Sequential(*map(SeparateReLUs, separate.network.layers))
    maps, wanted = (LRP(canonizer=canonizer)(model, batch(2)) for model in (shared, separate))
    assert torch.allclose(maps, wanted, rtol=1e-4, atol=1e-6 * float(wanted.abs().max()))


class Branches(nn.Module):
    """One GELU in two branches side by side, between whose passes back it must not mix anything up."""

    def __init__(self, shared: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = nn.Conv2d(3, 8, 3), nn.Conv2d(3, 8, 3)
        self.first, self.fc = nn.GELU(), nn.Linear(8, 10)
        self.second = self.first if shared else nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.left(x), self.right(x)
        return self.fc((self.first(left) + self.second(right)).mean((2, 3)))


def test_an_activation_shared_by_branches_is_as_good_as_two() -> None:
    maps, wanted = (LRP()(Model("branches", Branches(shared)), batch(2)) for shared in (True, False))
    assert torch.allclose(maps, wanted, rtol=1e-4, atol=1e-6 * float(wanted.abs().max()))


@pytest.mark.parametrize("name", ["resnet18", "vgg11", "mobilenet_v2", "densenet121", "squeezenet1_1"])
def test_the_usual_networks_are_covered(name: str) -> None:
    with torch.device("meta"):
        network = torchvision.models.get_model(name, weights=None)
    network = network.to_empty(device="cpu")
    for tensor in network.state_dict().values():
        tensor.fill_(0.01)
    assert coverage(Model(name, network), torch.rand(1, 3, 64, 64)).fault == ""


def test_the_embedded_networks_are_covered() -> None:
    for name in ("scene", "object", "scene_plain"):
        model = embedded.load(name)
        side = model.view.size if model.view else 64
        assert coverage(model, torch.rand(1, 3, side, side)).fault == ""


def test_squeeze_and_excitation_is_refused() -> None:
    model = Model("b0", torchvision.models.mobilenet_v3_small(weights=None))
    assert "a gate" in coverage(model, torch.rand(1, 3, 64, 64)).fault
