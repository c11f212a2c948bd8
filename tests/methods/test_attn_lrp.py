"""attn_lrp, cp_lrp and libra_grad: conservation, closed forms and straight implementations."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from networks import MEAN, STD, batch, seeded, small_cnn, small_vit
from torch import Tensor, nn

from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.gradient_rules import Gamma, Rules, replacements
from heatproof.methods._support.layer_activations import frozen
from heatproof.methods._support.op_override import Intercept, forward_only
from heatproof.methods.attn_lrp import AttnLRP
from heatproof.methods.full_grad import FullGrad, shares
from heatproof.methods.generic_attention import GenericAttention
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.methods.libra_grad import LibraGrad
from heatproof.methods.lrp import LRP
from heatproof.types import Batch, Model, read

CP = AttnLRP("cp_lrp", 0.0, 0.0)
PLAIN = AttnLRP(gamma_conv=0.0, gamma_linear=0.0)


class Bare(nn.Module):
    """Two transformer layers without any bias, shift, position or class token: nothing can keep a share."""

    def __init__(self, linear: bool = False) -> None:
        super().__init__()
        self.embed, self.linear = nn.Conv2d(3, 24, 8, 8, bias=False), linear
        self.norms = nn.ModuleList(nn.LayerNorm(24, bias=False) for _ in range(5))
        self.qkv = nn.ModuleList(nn.Linear(24, 72, bias=False) for _ in range(2))
        self.up = nn.ModuleList(nn.Linear(24, 48, bias=False) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(48, 24, bias=False) for _ in range(2))
        self.head = nn.Linear(24, 10, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).mT
        for layer in range(2):
            q, k, v = self.qkv[layer](self.norms[2 * layer](x)).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
            mixed = q @ (k.mT @ v) / 16 if self.linear else F.scaled_dot_product_attention(q, k, v)
            x = x + mixed.transpose(1, 2).flatten(2)
            x = x + self.down[layer](F.gelu(self.up[layer](self.norms[2 * layer + 1](x))))
        return self.head(self.norms[4](x).mean(1))


def double(network: nn.Module) -> Model:
    return Model("bare", network.double(), MEAN, STD)


def logits(model: Model, pictures: Batch) -> Tensor:
    return read(model(pictures.images), pictures.targets, "logit")


def test_cp_lrp_conserves_the_logit() -> None:
    """Through residuals, norms, GELU and attention, to rounding."""
    model, pictures = double(seeded(Bare)), batch(3)
    wide = Batch(pictures.images.double(), pictures.targets, pictures.ids)
    total = CP.channels(model, wide).sum((1, 2, 3))
    assert torch.allclose(total, logits(model, wide), rtol=1e-8)
    lost = InputXGradient().channels(model, wide).sum((1, 2, 3))  # plain gradients lose nearly all of it to norms
    assert float((lost - logits(model, wide)).abs().max()) > 1e-3


@pytest.mark.parametrize("gammas", [(0.0, 0.0), (0.25, 0.05), (100.0, 1.0)])
@pytest.mark.parametrize("composite", ["attn_lrp", "cp_lrp"])
def test_relevance_is_conserved_on_linear_attention(composite: Any, gammas: tuple[float, float]) -> None:
    """Without a softmax the halves of a product add up."""
    model, pictures = double(seeded(lambda: Bare(linear=True))), batch(3)
    wide = Batch(pictures.images.double(), pictures.targets, pictures.ids)
    rules = Rules(composite == "cp_lrp", True, gammas[1], gammas[0])
    with frozen(model.network), forward_only(model.network, replacements(rules)):
        x = wide.images.clone().requires_grad_()
        normal = model.normalised(x)
        answer = read(model.network(normal), wide.targets, "logit")
        (slope,) = torch.autograd.grad(answer.sum(), normal)
    total = (slope * normal).sum((1, 2, 3))
    assert float((total - answer).abs().max() / answer.abs().max()) < 1e-4


def test_gamma_of_one_layer_is_the_generalised_rule() -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(4, 6).double(), torch.randn(3, 6).double(), torch.randn(3).double()
    leaf, gamma = x.clone().requires_grad_(), 0.7
    z = Gamma.apply(leaf, w, b, gamma, F.linear)
    start = torch.randn(4, 3).double()
    (slope,) = torch.autograd.grad(z, leaf, start)
    relevance = torch.zeros_like(x)
    for row in range(4):
        for out in range(3):
            parts = x[row] * w[out]
            same = parts.clamp(min=0) if z[row, out] > 0 else parts.clamp(max=0)  # of the output's own sign
            own = b[out].clamp(min=0) if z[row, out] > 0 else b[out].clamp(max=0)
            weighted = parts + gamma * same
            total = weighted.sum() + b[out] + gamma * own
            relevance[row] += weighted / total * (start * z)[row, out].detach()
    assert torch.allclose(slope * x, relevance, atol=1e-12)


def straight(network: nn.Module, x: Tensor, halves: bool) -> Tensor:
    """SmallViT written out with the rules as detached factors; `halves` also lets relevance into scores."""

    def norm(layer: nn.LayerNorm, value: Tensor) -> Tensor:
        mean = value.mean(-1, keepdim=True)
        spread = ((value - mean).pow(2).mean(-1, keepdim=True) + layer.eps).sqrt().detach()
        return (value - mean) / spread * layer.weight + layer.bias

    def half(value: Tensor, factor: float) -> Tensor:
        return value * factor + (value * (1 - factor)).detach()

    value = network.patch_embed(x).flatten(2).transpose(1, 2)
    value = torch.cat([network.cls_token.detach().expand(len(x), -1, -1), value], 1) + network.pos_embed.detach()
    for block in network.blocks:
        q, k, v = (
            block.attn.qkv(norm(block.norm1, value)).unflatten(2, (3, block.attn.heads, -1)).permute(2, 0, 3, 1, 4)
        )
        q, k, v = (half(q, 0.25), half(k, 0.25), half(v, 0.5)) if halves else (q.detach(), k.detach(), v)
        attention = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        value = value + block.attn.proj((attention @ v).transpose(1, 2).flatten(2))
        inner = block.mlp[0](norm(block.norm2, value))
        value = value + block.mlp[2](inner * (F.gelu(inner) / inner).detach())
    return network.head(norm(network.norm, value)[:, 0])


@pytest.mark.parametrize("halves", [True, False])
def test_without_gamma_it_is_a_straight_implementation(halves: bool) -> None:
    model, pictures = small_vit(), batch(3)
    normal = model.normalised(pictures.images).requires_grad_()
    answer = straight(model.network, normal, halves)
    (slope,) = torch.autograd.grad(read(answer, pictures.targets, "logit").sum(), normal)
    wanted = (slope * normal).sum(1)
    maps = (PLAIN if halves else CP)(model, pictures)
    assert float((maps - wanted).abs().max() / wanted.abs().max()) < 1e-5
    if not halves:
        libra = LibraGrad(InputXGradient())(model, pictures)
        assert float((libra - wanted).abs().max() / wanted.abs().max()) < 1e-5


def test_one_attention_of_attn_lrp_has_a_known_total() -> None:
    """total = o/2 + (Σ q·g_q + Σ k·g_k) / 4, and both sums are equal."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 5, 4).double().requires_grad_() for _ in range(3))
    start = torch.randn(1, 2, 5, 4).double()
    answer = (F.scaled_dot_product_attention(q, k, v) * start).sum()
    plain = [
        (leaf * slope).sum() for leaf, slope in zip((q, k, v), torch.autograd.grad(answer, (q, k, v)), strict=True)
    ]
    with Intercept(replacements(Rules(attention=False))):
        ruled = (F.scaled_dot_product_attention(q, k, v) * start).sum()
    assert torch.allclose(ruled, answer)
    found = [(leaf * slope).sum() for leaf, slope in zip((q, k, v), torch.autograd.grad(ruled, (q, k, v)), strict=True)]
    assert torch.allclose(plain[0], plain[1])
    assert torch.allclose(sum(found), answer / 2 + (plain[0] + plain[1]) / 4)


@pytest.mark.parametrize(
    ("operation", "value"),
    [
        (F.gelu, 1e-9),
        (F.silu, -1e-9),
        (torch.tanh, 0.0),
        (lambda x: x * torch.sigmoid(1.702 * x), 0.3),  # QuickGELU: the gate is constant
        (lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), -0.4),
        (lambda x: F.hardswish(x, True), 0.7),
        (lambda x: F.normalize(x, dim=0), 0.7),
        (lambda x: x / x.norm(), 0.7),
        (lambda x: x * (x.pow(2).mean() + 1e-6).rsqrt(), 0.7),
        (lambda x: F.rms_norm(x, (4,)), 0.7),
        (lambda x: F.group_norm(x.view(1, 4, 1), 2, eps=1e-5).flatten(), 0.7),
    ],
)
def test_these_operations_pass_relevance_on(operation: Any, value: float) -> None:
    """x · gradient is the output itself, and the output is unchanged."""
    x = (torch.tensor([1.0, -2.0, 0.5, 3.0]).double() * value).requires_grad_()
    plain = operation(x * 1)
    with Intercept(replacements(Rules())):
        ruled = operation(x * 1)
    assert torch.allclose(plain, ruled, atol=1e-12)
    weights = torch.arange(1.0, 5).double()
    (slope,) = torch.autograd.grad((ruled * weights).sum(), x)
    assert torch.allclose((slope * x).sum(), (ruled * weights).sum(), atol=1e-9)


def test_libra_is_complete_with_biases() -> None:
    """Σ x·g + Σ b·g over every bias, norm, position and class token is the logit exactly."""
    model, pictures = small_vit(), batch(2)
    network = model.network.double()
    wide = Batch(pictures.images.double(), pictures.targets, pictures.ids)
    before = model(wide.images)
    rest: dict[str, Tensor] = {}
    for name, parameter in network.named_parameters():
        if name.endswith("bias") or name in ("cls_token", "pos_embed"):
            rest[name] = parameter
    normal = model.normalised(wide.images).requires_grad_()
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    for parameter in rest.values():
        parameter.requires_grad_(True)
    with Intercept(replacements(Rules())):
        answer = network(normal)
    assert torch.allclose(answer, before, atol=1e-12)
    value = read(answer, wide.targets, "logit").sum()
    slopes = torch.autograd.grad(value, [normal, *rest.values()])
    total = sum((leaf * slope).sum() for leaf, slope in zip([normal, *rest.values()], slopes, strict=True))
    assert torch.allclose(total, value, rtol=1e-9)


OF = [InputXGradient(), IntegratedGradients(steps=4), FullGrad(rescale=False), GenericAttention()]


@pytest.mark.parametrize("of", OF, ids=lambda method: type(method).__name__)
def test_libra_mends_any_gradient_method_and_leaves_nothing_behind(of: Any) -> None:
    model, pictures = small_vit(), batch(3)
    before, plain = model(pictures.images), of(model, pictures)
    maps = LibraGrad(of)(model, pictures)
    assert float((maps - plain).abs().max()) > 1e-3 * float(plain.abs().max())
    alone = torch.cat([LibraGrad(of)(model, pictures.select([row])) for row in range(3)])
    assert torch.allclose(maps, alone, atol=1e-5 * float(maps.abs().max()))
    assert torch.equal(model(pictures.images), before)
    assert torch.equal(of(model, pictures), plain)
    assert LibraGrad(of).signed == of.signed
    assert LibraGrad(of).cost() == of.cost()


def test_libra_leaves_a_rectifier_network_as_it_is() -> None:
    model, pictures = small_cnn(), batch(2)
    plain = InputXGradient()(model, pictures)
    assert torch.allclose(LibraGrad(InputXGradient())(model, pictures), plain, atol=1e-6 * float(plain.abs().max()))


class Cosine(nn.Module):
    """A normalised embedding against fixed texts, as in CLIP."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 8, 8, bias=False)
        self.register_buffer("texts", F.normalize(torch.randn(10, 8), dim=1))

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(self.embed(x).mean((2, 3)), dim=1) @ self.texts.T


def test_unit_norm_decides_whether_a_cosine_is_conserved() -> None:
    model, pictures = Model("cosine", seeded(Cosine), MEAN, STD), batch(3)
    answers = logits(model, pictures)
    kept = LibraGrad(InputXGradient(), unit_norm=True).channels(model, pictures).sum((1, 2, 3))
    lost = LibraGrad(InputXGradient()).channels(model, pictures).sum((1, 2, 3))
    assert torch.allclose(kept, answers, atol=1e-5)
    assert float(lost.abs().max()) < 1e-5


def test_errors_say_what_to_take() -> None:
    with pytest.raises(NotApplicable, match="no attention over tokens: take lrp, or libra_grad"):
        AttnLRP()(small_cnn(), batch(1))
    with pytest.raises(NotApplicable, match="take attn_lrp"):
        LRP()(small_vit(), batch(1))
    with pytest.raises(BadInput, match="gamma_conv must be at least 0"):
        AttnLRP(gamma_conv=-1.0)


def test_gammas_move_the_map_and_batches_do_not() -> None:
    model, pictures = small_vit(), batch(3)
    maps = AttnLRP()(model, pictures)
    alone = torch.cat([AttnLRP()(model, pictures.select([row])) for row in range(3)])
    assert torch.allclose(maps, alone, atol=1e-5 * float(maps.abs().max()))
    assert not torch.allclose(maps, PLAIN(model, pictures), rtol=1e-2)
    assert not torch.allclose(maps, AttnLRP("cp_lrp")(model, pictures), rtol=1e-2)
    wide = Model("double", copy.deepcopy(model.network).double(), MEAN, STD)
    assert torch.allclose(AttnLRP()(wide, pictures).float(), maps, atol=1e-3 * float(maps.abs().max()))
    assert float(shares(model, pictures, "logit").pixels.abs().max()) > 0
