"""Attention with gradients, LeGrad and transformer LRP: known solutions and straight implementations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from networks import MEAN, STD, SmallViT, batch, seeded, small_cnn, small_vit
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods._support.attention_flow import flow_of, read_of, through
from heatproof.methods._support.attention_layers import Recorder, multi_head, written_out
from heatproof.methods._support.relevance_sweep import quotient
from heatproof.methods._support.upsample import upsample
from heatproof.methods.attention_gradient_cam import AttentionGradientCam
from heatproof.methods.generic_attention import GenericAttention
from heatproof.methods.legrad import LeGrad
from heatproof.methods.transformer_lrp import TransformerLRP, relevances
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.types import Batch, Model, read

METHODS = [GenericAttention(), AttentionGradientCam(), LeGrad(), TransformerLRP()]


class OneLayer(nn.Module):
    """y = w · Σ_j A_rj v_j without residual, norm or bias; `reads` says which rows r the head averages."""

    def __init__(self, heads: int = 1, reads: str = "class") -> None:
        super().__init__()
        self.embed, self.first = nn.Conv2d(3, 12, 8, 8), nn.Parameter(torch.randn(1, 1, 12))
        self.qkv, self.head = nn.Linear(12, 36, bias=False), nn.Linear(12, 10, bias=False)
        self.heads, self.reads = heads, reads

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        tokens = torch.cat([self.first.expand(len(x), -1, -1), self.embed(x).flatten(2).mT], 1)
        return self.qkv(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(x)
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return self.head(seen[:, 0] if self.reads == "class" else seen.mean(1))


def known(network: OneLayer, pictures: Batch) -> tuple[Tensor, Tensor]:
    """A (B, heads, T, T), and u_j = w_c · v_j for each head (B, heads, T)."""
    q, k, v = network.split((pictures.images - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1))
    weights = network.head.weight[pictures.targets].unflatten(1, (network.heads, -1))
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1), torch.einsum("bhjd,bhd->bhj", v, weights)


def laid_out(weights: Tensor, pictures: Batch) -> Tensor:
    return upsample(weights[:, -16:].unflatten(1, (4, 4)).detach(), pictures.images)


@pytest.mark.parametrize("heads", [1, 3])
def test_one_layer_has_a_known_solution(heads: int) -> None:
    network, pictures = seeded(lambda: OneLayer(heads)), batch(3)
    model = Model("one", network, MEAN, STD)
    attention, worth = known(network, pictures)
    generic = (attention[:, :, 0] * worth).clamp(min=0).mean(1)
    assert torch.allclose(GenericAttention()(model, pictures), laid_out(generic, pictures), rtol=1e-4, atol=1e-7)
    cam = (attention[:, :, 0] * worth[:, :, 1:].mean(2, keepdim=True)).mean(1).clamp(min=0)
    assert torch.allclose(AttentionGradientCam()(model, pictures), laid_out(cam, pictures), rtol=1e-4, atol=1e-7)
    found = relevances(model, pictures.images, pictures.targets)[0]
    assert torch.allclose(found.sum((1, 2, 3)), torch.full((3,), 0.5), atol=1e-4)  # half to A, half to V


def test_a_mean_over_tokens_is_followed_from_every_row() -> None:
    network, pictures = seeded(lambda: OneLayer(2, reads="mean")), batch(3)
    model = Model("mean", network, MEAN, STD)
    attention, worth = known(network, pictures)
    # dy/dA_ij = u_j / T for every row i, and each row is read with 1/T.
    wanted = (attention * worth[:, :, None] / 17).clamp(min=0).mean(1).mean(1)
    assert torch.allclose(
        GenericAttention()(model, pictures), laid_out(wanted, pictures) + 1 / 17, rtol=1e-4, atol=1e-6
    )


class AsBlock(OneLayer):
    """The same with its attention in a block of its own, as LeGrad needs it."""

    class Mixing(nn.Module):
        def __init__(self, outer: OneLayer) -> None:
            super().__init__()
            self.qkv, self.heads = outer.qkv, outer.heads

        def forward(self, tokens: Tensor) -> Tensor:
            q, k, v = self.qkv(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def __init__(self) -> None:
        super().__init__(3, "mean")
        self.block = self.Mixing(self)

    def forward(self, x: Tensor) -> Tensor:
        tokens = torch.cat([self.first.expand(len(x), -1, -1), self.embed(x).flatten(2).mT], 1)
        return self.head(self.block(tokens).mean(1))


@pytest.mark.parametrize("pool", ["mean", "own"])
def test_legrad_of_one_layer_does_not_depend_on_attention(pool: Any) -> None:
    network, pictures = seeded(AsBlock), batch(3)
    _, worth = known(network, pictures)
    wanted = laid_out(worth.clamp(min=0).mean(1) / 17, pictures)
    found = LeGrad(layers=1, pool=pool)(Model("block", network, MEAN, STD), pictures)
    assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-8)
    with pytest.raises(NotApplicable, match="blocks that keep the shape"):
        LeGrad()(Model("bare", seeded(lambda: OneLayer(2)), MEAN, STD), pictures)


def test_two_layers_by_the_product_rule() -> None:
    model, pictures = small_vit(), batch(2)
    flow = flow_of(model, pictures.images, pictures.targets, lambda z, t: read(z, t, "logit"), "this")
    one, two = ((a * g).clamp(min=0).mean(1) for a, g in zip(flow.layers, flow.slopes, strict=True))
    row = torch.eye(17)[0] + one[:, 0] + two[:, 0] + (two @ one)[:, 0]
    assert torch.allclose(through(flow, [one, two]), row, rtol=1e-5)
    assert torch.allclose(GenericAttention()(model, pictures), laid_out(row, pictures), rtol=1e-5)
    last_only = through(flow, [one, two], skip=1)
    assert torch.allclose(last_only, torch.eye(17)[0] + two[:, 0], rtol=1e-5)


def test_only_a_planted_token_is_marked() -> None:
    """One patch's value alone reaches the head, with positive weight."""
    network, pictures = seeded(OneLayer), batch(2)
    with torch.no_grad():
        network.embed.bias.zero_()
        network.first.zero_()
        network.head.weight.copy_(network.head.weight.abs())
        network.qkv.weight[24:].copy_(network.qkv.weight[24:].abs())
        network.embed.weight.copy_(network.embed.weight.abs())
    images = torch.zeros_like(pictures.images)
    images[:, :, 8:16, 16:24] = 1.0
    model = Model("planted", network)
    planted = torch.zeros(1, 16)
    planted[0, 1 * 4 + 2] = 1.0
    for method in (GenericAttention(), TransformerLRP()):
        maps = method(model, pictures.showing(images))
        wanted = laid_out(planted, pictures)[0]
        assert torch.allclose(
            maps / maps.amax((1, 2), keepdim=True), (wanted / wanted.max()).expand_as(maps), atol=1e-5
        )


# The heads of networks: which tokens are read.


@pytest.mark.parametrize(
    ("rows", "shares"),
    [
        ({0: 1.0}, {0: 1.0}),
        ({0: 1.0, 1: 2.0}, {0: 0.5, 1: 0.5}),  # distilled
        ({2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0}, {2: 0.25, 3: 0.25, 4: 0.25, 5: 0.25}),
        (dict.fromkeys(range(6), 1.0), dict.fromkeys(range(6), 1 / 6)),  # class token in the average
        ({0: 3.0, 2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0}, {0: 0.5, 2: 0.125, 3: 0.125, 4: 0.125, 5: 0.125}),
    ],
)
def test_what_the_head_reads_shows_in_its_gradient(rows: dict[int, float], shares: dict[int, float]) -> None:
    slopes, wanted = torch.zeros(1, 6, 4), torch.zeros(1, 6)
    for row, size in rows.items():
        slopes[0, row] = size * torch.arange(1.0, 5)
    for row, share in shares.items():
        wanted[0, row] = share
    assert torch.allclose(read_of(slopes, first=2), wanted)


# However attention is computed.


class WrittenOut(nn.Module):
    """The softmax in plain sight."""

    def __init__(self, like: nn.Module) -> None:
        super().__init__()
        self.qkv, self.proj, self.heads = like.qkv, like.proj, like.heads

    def forward(self, x: Tensor) -> Tensor:
        count, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(count, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1)
        return self.proj((attention @ v).transpose(1, 2).reshape(count, tokens, width))


class Torch(nn.Module):
    """nn.MultiheadAttention with the same weights."""

    def __init__(self, like: nn.Module) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(like.proj.in_features, like.heads, batch_first=True)
        with torch.no_grad():
            self.inner.in_proj_weight.copy_(like.qkv.weight)
            self.inner.in_proj_bias.copy_(like.qkv.bias)
            self.inner.out_proj.weight.copy_(like.proj.weight)
            self.inner.out_proj.bias.copy_(like.proj.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize("wrapped", [WrittenOut, Torch])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_every_way_of_computing_attention_gives_the_same_map(method: Any, wrapped: type[nn.Module]) -> None:
    model, other, pictures = small_vit(), small_vit(), batch(2)
    for block in other.network.blocks:
        block.attn = wrapped(block.attn)
    for network in (model.network, other.network):  # relevance is divided by sums near zero
        network.double().eval()
    wanted = method(model, pictures)
    assert float(wanted.std()) > 0
    assert torch.allclose(method(other, pictures), wanted, atol=1e-5 * float(wanted.max()))


@pytest.mark.parametrize("masked", [None, torch.bool, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
def test_written_out_attention_is_the_fused_one(masked: Any, causal: bool) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 5, 6), torch.randn(2, 2, 5, 6), torch.randn(2, 2, 5, 6)
    mask = None if masked is None or causal else (torch.randn(5, 5) > -1).to(masked)
    options: dict[str, Any] = {"attn_mask": mask, "is_causal": causal, "scale": 0.3, "enable_gqa": True}
    assert torch.allclose(
        written_out(q, k, v, **options), F.scaled_dot_product_attention(q, k, v, **options), atol=1e-6
    )


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 7, "vdim": 5}])
@pytest.mark.parametrize("masked", [False, True])
def test_written_out_multi_head_attention_is_torchs(options: dict[str, Any], masked: bool) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(12, 3, **options).eval()
    query = torch.randn(4, 2, 12)
    key, value = torch.randn(6, 2, options.get("kdim", 12)), torch.randn(6, 2, options.get("vdim", 12))
    given = (
        {"attn_mask": torch.rand(4, 6) > 0.7, "key_padding_mask": torch.arange(6).expand(2, 6) > 4} if masked else {}
    )
    wanted, weights = layer(query, key, value, **given)
    seen: list[Tensor] = []

    class Mode(Recorder):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is F.multi_head_attention_forward:
                found = multi_head(*args, **(kwargs or {}))
                seen.extend(part for part in found if part is not None)
                return found
            return func(*args, **(kwargs or {}))

    with Mode(2, (32, 32)):
        layer(query, key, value, **given)
    assert torch.allclose(seen[0], wanted, atol=1e-6)
    assert torch.allclose(seen[1], weights, atol=1e-6)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_nothing_stays_patched_and_batches_do_not_matter(method: Any) -> None:
    model, pictures = small_vit(), batch(3)
    before = model(pictures.images)
    maps = method(model, pictures)
    assert torch.equal(model(pictures.images), before)
    assert all(parameter.requires_grad for parameter in model.network.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.network.modules())
    alone = torch.cat([method(model, pictures.select([row])) for row in range(3)])
    assert torch.allclose(maps, alone, atol=1e-5 * float(maps.max()))
    double = Model("double", copy.deepcopy(model.network).double(), MEAN, STD)
    assert torch.allclose(method(double, pictures).float(), maps, atol=1e-3 * float(maps.max()))
    assert float(maps.min()) >= 0


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_network_without_attention_hears_what_to_take(method: Any) -> None:
    with pytest.raises(NotApplicable, match="no attention over tokens: take grad_cam"):
        method(small_cnn(), batch(1))


# Straight implementations of the published definitions, picture by picture.


def parts_of(network: SmallViT, image: Tensor) -> tuple[Tensor, list[dict[str, Tensor]]]:
    """Tokens before the blocks, and everything that each block computes, for one normalised picture."""
    tokens = network.patch_embed(image[None]).flatten(2).transpose(1, 2)
    tokens = torch.cat([network.cls_token.expand(1, -1, -1), tokens], 1) + network.pos_embed
    start, blocks = tokens, []
    for block in network.blocks:
        normed = block.norm1(tokens)
        q, k, v = block.attn.qkv(normed).reshape(1, 17, 3, block.attn.heads, -1).permute(2, 0, 3, 1, 4)
        attention = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        attention.requires_grad_() if attention.is_leaf else attention.retain_grad()
        mixed = (attention @ v).transpose(1, 2).reshape(1, 17, -1)
        added = block.attn.proj(mixed)
        middle = tokens + added
        inner = block.mlp[0](block.norm2(middle))
        after = block.mlp[2](block.mlp[1](inner))
        blocks.append(
            {"x": tokens, "n": normed, "q": q, "k": k, "v": v, "a": attention, "o": mixed, "p": added, "m": middle}
            | {"i": block.norm2(middle), "g": inner, "h": block.mlp[1](inner), "f": after, "y": middle + after}
        )
        tokens = middle + after
    return start, blocks


def normalised(model: Model, pictures: Batch) -> Tensor:
    return model.normalised(pictures.images)


def straight_legrad(network: SmallViT, image: Tensor, target: int, layers: int) -> Tensor:
    """LeGrad of the published code for CLIP: mean of all tokens, final norm, head; the last layers."""
    _, blocks = parts_of(network, image)
    total = torch.zeros(4, 4)
    for block in blocks[-layers:]:
        feature = block["y"].mean(1)
        score = network.head(network.norm(feature))[0, target]
        (slope,) = torch.autograd.grad(score, block["a"], retain_graph=True)
        total += slope.clamp(min=0).mean(1).mean(1)[0, 1:].view(4, 4)
    return total


@pytest.mark.parametrize("layers", [1, 2])
def test_legrad_is_the_published_one(layers: int) -> None:
    model, pictures = small_vit(), batch(3)
    wanted = torch.stack(
        [
            straight_legrad(model.network, image, int(target), layers)
            for image, target in zip(normalised(model, pictures), pictures.targets, strict=True)
        ]
    )
    found = LeGrad(layers=layers)(model, pictures)
    wanted = upsample(wanted, pictures.images)
    assert float((found - wanted).abs().max() / wanted.max()) < 1e-5


def alpha_one(layer: nn.Linear, x: Tensor, relevance: Tensor) -> Tensor:
    """α = 1, β = 0: positive inputs by positive weights and negative by negative ones, one denominator."""
    plus, minus = layer.weight.clamp(min=0), layer.weight.clamp(max=0)
    share = quotient(relevance, x.clamp(min=0) @ plus.T + x.clamp(max=0) @ minus.T)
    return x.clamp(min=0) * (share @ plus) + x.clamp(max=0) * (share @ minus)


def shared_sum(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    first, second = a * quotient(relevance, a + b), b * quotient(relevance, a + b)
    one, two, whole = first.sum(), second.sum(), relevance.sum()
    size = one.abs() + two.abs()
    return first * (one.abs() / size * whole / one), second * (two.abs() / size * whole / two)


def straight_transformer_lrp(network: SmallViT, image: Tensor, target: int) -> tuple[Tensor, list[Tensor]]:
    _, blocks = parts_of(network, image)
    last = network.norm(blocks[-1]["y"])[:, 0]
    score = network.head(last)[0, target]
    score.backward(retain_graph=True)
    start = torch.zeros(1, network.head.out_features, dtype=image.dtype)
    start[0, target] = 1.0
    relevance = torch.zeros_like(blocks[-1]["y"])
    relevance[:, 0] = alpha_one(network.head, last, start)
    cams: list[Tensor] = []
    found: list[Tensor] = []
    for block, layer in zip(reversed(blocks), reversed(list(network.blocks)), strict=True):
        heads = layer.attn.heads
        skipped, inner = shared_sum(block["m"], block["f"], relevance)
        inner = alpha_one(layer.mlp[0], block["i"], alpha_one(layer.mlp[2], block["h"], inner))
        skipped, inner = shared_sum(block["x"], block["p"], skipped + inner)
        inner = alpha_one(layer.attn.proj, block["o"], inner).reshape(1, 17, heads, -1).transpose(1, 2)
        share = quotient(inner, block["a"] @ block["v"])
        of_attention = block["a"] * (share @ block["v"].mT) / 2
        of_values = block["v"] * (block["a"].mT @ share) / 2
        scores = block["q"] @ block["k"].mT
        share = quotient(of_attention, scores)
        of_queries, of_keys = block["q"] * (share @ block["k"]) / 2, block["k"] * (share.mT @ block["q"]) / 2
        packed = torch.stack([of_queries, of_keys, of_values]).permute(1, 3, 0, 2, 4).reshape(1, 17, -1)
        relevance = skipped + alpha_one(layer.attn.qkv, block["n"], packed)
        found.insert(0, of_attention)
        cams.insert(0, (block["a"].grad * of_attention).clamp(min=0).mean(1)[0])
    flow = identity = torch.eye(17, dtype=image.dtype)
    for cam in cams:
        mixed = identity + cam
        flow = mixed / mixed.sum(1, keepdim=True) @ flow
    return flow[0, 1:].view(4, 4), found


def test_transformer_lrp_is_the_published_one() -> None:
    model, pictures = small_vit(), batch(3)
    model.network.double()
    straight = [
        straight_transformer_lrp(model.network, image, int(target))
        for image, target in zip(normalised(model, pictures).double(), pictures.targets, strict=True)
    ]
    found = relevances(model, pictures.images, pictures.targets)
    for layer, relevance in enumerate(found):
        wanted = torch.cat([each[1][layer] for each in straight]).detach()
        assert float((relevance - wanted).abs().max() / wanted.abs().max()) < 1e-6
    maps = TransformerLRP()(model, pictures).double()
    wanted = upsample(torch.stack([each[0] for each in straight]).detach(), pictures.images.double())
    assert float((maps - wanted).abs().max() / wanted.max()) < 1e-5


def test_timm_and_transformers_copies_of_one_network_agree() -> None:
    import_torchvision("this test")
    import timm
    import transformers

    torch.manual_seed(0)
    ours = timm.create_model(
        "vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=10
    ).eval()
    config = transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, image_size=32, patch_size=8
    )
    config.num_labels, config.layer_norm_eps = 10, 1e-6
    other = transformers.ViTForImageClassification(config).eval()
    other.load_state_dict(renamed(ours.state_dict(), list(other.state_dict())))

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = other

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(pixel_values=x).logits

    pictures = batch(2)
    both = [Model("timm", ours, MEAN, STD), Model("transformers", Logits(), MEAN, STD)]
    assert torch.allclose(both[0](pictures.images), both[1](pictures.images), atol=1e-5)
    for method in METHODS:
        one, two = (method(model, pictures) for model in both)
        assert float((one - two).abs().max() / one.max()) < 1e-4, method


def renamed(state: dict[str, Tensor], wanted: list[str]) -> dict[str, Tensor]:
    """timm's weights under transformers' names; `wanted` are those names, which differ between its versions."""
    found: dict[str, Tensor] = {}
    places: list[tuple[str, Callable[[Tensor], Tensor], str]] = [
        ("cls_token", lambda t: t, "cls_token"),
        ("position_embeddings", lambda t: t, "pos_embed"),
        ("patch_embeddings.projection.", lambda t: t, "patch_embed.proj."),
        ("classifier.", lambda t: t, "head."),
    ]
    for name in wanted:
        last = name.rpartition(".")[2]
        layer = next((part for part in name.split(".") if part.isdigit()), None)
        place = next((own for end, _, own in places if end in name), None)
        if place is not None:
            found[name] = state[place + (last if place.endswith(".") else "")]
        elif layer is None:
            found[name] = state[f"norm.{last}"]
        else:
            own = f"blocks.{layer}."
            for number, part in enumerate("qkv"):
                if any(word in name for word in (f"{part}_proj", {"q": "query", "k": "key", "v": "value"}[part])):
                    found[name] = state[f"{own}attn.qkv.{last}"].chunk(3)[number]
            if name in found:
                continue
            if "layernorm_before" in name or "layer_norm1" in name:
                found[name] = state[f"{own}norm1.{last}"]
            elif "layernorm_after" in name or "layer_norm2" in name:
                found[name] = state[f"{own}norm2.{last}"]
            elif "intermediate" in name or "fc1" in name:
                found[name] = state[f"{own}mlp.fc1.{last}"]
            elif "attention" in name and ("output" in name or "o_proj" in name or "out_proj" in name):
                found[name] = state[f"{own}attn.proj.{last}"]
            else:
                found[name] = state[f"{own}mlp.fc2.{last}"]
    return found
