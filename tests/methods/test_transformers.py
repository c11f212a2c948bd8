"""Attention as it is computed, however a network computes it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from networks import MEAN, STD, Attention, SmallViT, batch, small_cnn, small_vit
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods._support.upsample import upsample
from heatproof.methods.attention_rollout import AttentionRollout, attends, token_layer
from heatproof.methods.cam import GradCam
from heatproof.types import Model


class WrittenOut(nn.Module):
    """The softmax in plain sight, as in the embedded networks."""

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

    def __init__(self, like: nn.Module, need_weights: bool) -> None:
        super().__init__()
        self.need_weights = need_weights
        self.inner = nn.MultiheadAttention(like.proj.in_features, like.heads, batch_first=True)
        with torch.no_grad():
            self.inner.in_proj_weight.copy_(like.qkv.weight)
            self.inner.in_proj_bias.copy_(like.qkv.bias)
            self.inner.out_proj.weight.copy_(like.proj.weight)
            self.inner.out_proj.bias.copy_(like.proj.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, need_weights=self.need_weights)[0]


def with_attention(kind: str) -> Model:
    model = small_vit()
    for block in model.network.blocks:
        match kind:
            case "written_out":
                block.attn = WrittenOut(block.attn)
            case "torch":
                block.attn = Torch(block.attn, need_weights=True)
            case "torch_without_weights":
                block.attn = Torch(block.attn, need_weights=False)
    model.network.eval()
    return model


@pytest.mark.parametrize("kind", ["written_out", "torch", "torch_without_weights"])
def test_every_way_of_computing_attention_gives_the_same_map(kind: str) -> None:
    pictures, model = batch(2), with_attention(kind)
    with torch.no_grad():
        assert torch.allclose(model(pictures.images), small_vit()(pictures.images), atol=1e-5)
    wanted = AttentionRollout()(small_vit(), pictures)
    assert torch.allclose(AttentionRollout()(model, pictures), wanted, rtol=1e-4)
    assert token_layer(model, pictures.images) == "blocks.1.norm1"
    assert torch.allclose(GradCam()(model, pictures), GradCam()(small_vit(), pictures), rtol=1e-3, atol=1e-6)


def rollout(layers: list[Tensor], residual: float) -> Tensor:
    """A straight implementation: each layer mixed with the identity, then their product."""
    flow = identity = torch.eye(layers[0].shape[-1])
    for layer in layers:
        mixed = (1 - residual) * layer + residual * identity
        flow = mixed / mixed.sum(-1, keepdim=True) @ flow
    return flow


@pytest.mark.parametrize("residual", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("read", ["class", "distilled", "patches", "all"])
def test_rollout_starts_from_what_the_head_reads(residual: float, read: str) -> None:
    """Never from row 0 as such, which may be a register."""
    rows = {"class": [0], "distilled": [0, 1], "patches": list(range(2, 18)), "all": list(range(18))}[read]
    network = Reading(rows)
    pictures, layers = batch(2), []
    with torch.no_grad():
        tokens = network.tokens(pictures.images)
        for block in network.blocks:
            q, k, _ = block.attn.qkv(block.norm1(tokens)).unflatten(2, (3, block.attn.heads, -1)).permute(2, 0, 3, 1, 4)
            layers.append((q @ k.mT * q.shape[-1] ** -0.5).softmax(-1).mean(1))
            tokens = block(tokens)
    looked = rollout(layers, residual)[:, rows].mean(1)[:, 2:].reshape(2, 4, 4)
    maps = AttentionRollout(residual=residual)(Model("reading", network), pictures)
    assert torch.allclose(maps, upsample(looked, pictures.images), rtol=1e-4)


class Reading(nn.Module):
    """Two tokens before the patches, and a head on the mean of the given rows."""

    def __init__(self, rows: list[int]) -> None:
        super().__init__()
        torch.manual_seed(0)
        inner = SmallViT()
        self.patch_embed, self.blocks, self.norm, self.head = inner.patch_embed, inner.blocks, inner.norm, inner.head
        self.first, self.rows = nn.Parameter(torch.randn(1, 2, 24)), rows

    def tokens(self, x: Tensor) -> Tensor:
        return torch.cat([self.first.expand(len(x), -1, -1), self.patch_embed(x).flatten(2).mT], 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(x)))[:, self.rows].mean(1))


def test_an_attention_pooling_is_the_last_step() -> None:
    """Its only row is what the head reads, although it is not square."""

    class Pooled(Reading):
        def __init__(self) -> None:
            super().__init__([])
            self.ask = nn.Parameter(torch.randn(1, 1, 24))

        def forward(self, x: Tensor) -> Tensor:
            tokens = self.blocks(self.tokens(x))
            return self.head(F.scaled_dot_product_attention(self.ask.expand(len(x), -1, -1), tokens, tokens)[:, 0])

    network, pictures, layers = Pooled(), batch(2), []
    with torch.no_grad():
        tokens = network.tokens(pictures.images)
        for block in network.blocks:
            q, k, _ = block.attn.qkv(block.norm1(tokens)).unflatten(2, (3, block.attn.heads, -1)).permute(2, 0, 3, 1, 4)
            layers.append((q @ k.mT * q.shape[-1] ** -0.5).softmax(-1).mean(1))
            tokens = block(tokens)
        own = (network.ask @ tokens.mT * 24**-0.5).softmax(-1)
        own = 0.5 * own / (0.5 * own).sum(-1, keepdim=True)
    looked = (own @ rollout(layers, 0.5))[:, 0, 2:].reshape(2, 4, 4)
    maps, wanted = AttentionRollout()(Model("pooled", network), pictures), upsample(looked, pictures.images)
    assert torch.allclose(maps / maps.mean(), wanted / wanted.mean(), rtol=1e-4)


@pytest.mark.parametrize("options", [{"is_causal": True}, {"enable_gqa": True}])
def test_causal_and_grouped_attention_is_not_passed_over(options: dict[str, bool]) -> None:
    class Unusual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.kv = nn.Linear(16, 16), nn.Linear(16, 16 if "enable_gqa" in options else 32)

        def parts(self, x: Tensor) -> tuple[Tensor, ...]:
            k, v = self.kv(x).unflatten(2, (2, -1, 8)).permute(2, 0, 3, 1, 4)
            return self.q(x).unflatten(2, (2, 8)).transpose(1, 2), k, v

        def forward(self, x: Tensor) -> Tensor:
            seen = F.scaled_dot_product_attention(*self.parts(x), **options)
            return x + seen.transpose(1, 2).flatten(2)

    network, pictures = Patches(Unusual()).eval(), batch(2)
    with torch.no_grad():
        q, k, _ = network.over.parts(network.tokens(pictures.images))
        scores = q @ k.mT * 8**-0.5
        if "is_causal" in options:
            scores = scores.masked_fill(~torch.ones(17, 17).tril().bool(), -torch.inf)
        looked = rollout([scores.softmax(-1).mean(1)], 0.5)[:, 0, 1:].reshape(2, 4, 4)
    maps = AttentionRollout()(Model("unusual", network), pictures)
    assert torch.allclose(maps, upsample(looked, pictures.images), rtol=1e-4)
    assert attends(Model("unusual", network), pictures.images)


def test_it_is_the_same_for_every_class_and_positive() -> None:
    model, pictures = small_vit(), batch(2)
    maps = AttentionRollout()(model, pictures)
    assert torch.equal(maps, AttentionRollout()(model, pictures.aimed(pictures.targets + 3)))
    assert float(maps.min()) >= 0
    for heads in ("max", "min"):
        assert not torch.equal(AttentionRollout(heads)(model, pictures), maps)  # type: ignore[arg-type]


def test_attention_on_one_patch_shows_there() -> None:
    """Keys that answer to one patch's content draw every token's attention to it."""
    model, pictures = Model("vit", SmallViT(), MEAN, STD, fixed_size=True), batch(1)
    torch.manual_seed(0)
    images = torch.full_like(pictures.images, 0.5)
    images[:, :, 8:16, 16:24] = 1.0  # row 1, column 2 of the patches
    tokens = model.network
    with torch.no_grad():
        tokens.pos_embed.zero_()
        for block in tokens.blocks:
            block.attn.qkv.weight[:24] = 0  # queries: one constant direction
            block.attn.qkv.bias[:24] = 1.0
            mean = tokens.patch_embed(model.normalised(images))[0, :, 1, 2]
            other = tokens.patch_embed(model.normalised(images))[0, :, 0, 0]
            block.attn.qkv.weight[24:48] = 20 * (mean - other).expand(24, 24) / (mean - other).norm()
            block.attn.qkv.bias[24:48] = 0
    maps = AttentionRollout(residual=0.0)(model, pictures.showing(images))
    row, column = divmod(int(maps.argmax()), 32)
    assert 8 <= row < 16
    assert 16 <= column < 24


def test_networks_without_attention_are_distinguished() -> None:
    assert not attends(small_cnn(), batch(1).images)
    assert attends(small_vit(), batch(1).images)


class Patches(nn.Module):
    """Patches and a class token, whatever is wanted over them, and the head."""

    def __init__(self, over: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.first, self.head = (
            nn.Conv2d(3, 16, 8, 8),
            nn.Parameter(torch.randn(1, 1, 16)),
            nn.Linear(16, 10),
        )
        self.over = over

    def tokens(self, x: Tensor) -> Tensor:
        return torch.cat([self.first.expand(len(x), -1, -1), self.embed(x).flatten(2).transpose(1, 2)], 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.over(self.tokens(x))[:, 0])


@pytest.mark.parametrize("norm_first", [False, True])
def test_torchs_own_encoder_is_followed_wherever_its_norms_are(norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first)
    network = Patches(nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)).eval()
    pictures, attention = batch(2), []
    with torch.no_grad():
        tokens = network.tokens(pictures.images)
        for layer in network.over.layers:
            read = layer.norm1(tokens) if norm_first else tokens
            attention.append(layer.self_attn(read, read, read)[1])
            tokens = layer(tokens)
    looked = rollout(attention, 0.5)[:, 0, 1:].reshape(2, 4, 4)
    maps = AttentionRollout()(Model("encoder", network), pictures)
    assert torch.allclose(maps, upsample(looked, pictures.images), rtol=1e-4)


class Bare(nn.Module):
    """Attention without any norm, its queries, keys and values made by the given product."""

    def __init__(self, product: Any) -> None:
        super().__init__()
        self.product, self.weights = product, nn.ParameterList(torch.randn(16, 48) / 4 for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for weight in self.weights:
            q, k, v = self.product(x, weight).chunk(3, -1)
            x = x + (q @ k.transpose(-2, -1)).softmax(-1) @ v
        return x


PRODUCTS: list[Any] = [lambda x, w: x @ w, torch.matmul, Tensor.matmul, lambda x, w: x.matmul(other=w)]


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_product_with_a_weight_is_as_good_as_a_layer(product: Any) -> None:
    maps = []
    for one in (product, lambda x, w: F.linear(x, w.T)):
        torch.manual_seed(0)
        maps.append(AttentionRollout()(Model("bare", Patches(Bare(one))), batch(2)))
    assert float(maps[1].std()) > 0
    assert torch.allclose(maps[0], maps[1], rtol=1e-4)


class Windowed(nn.Module):
    """Attention within the quarters of a picture's tokens, two layers of it, then perhaps one over all of them."""

    def __init__(self, attention: str, last: bool) -> None:
        super().__init__()
        self.embed, self.norm = nn.Conv2d(3, 8, 4, 4), nn.LayerNorm(8)
        fused = [Attention(8, 2) for _ in range(3)]
        wrapped = {"fused": fused, "written_out": map(WrittenOut, fused), "torch": [Torch(a, False) for a in fused]}
        self.attentions, self.head, self.last = nn.ModuleList(wrapped[attention]), nn.Linear(8, 10), last

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).transpose(1, 2)
        for layer, attention in enumerate(self.attentions):
            size = 64 if layer == 2 and self.last else 16
            tokens = tokens + attention(self.norm(tokens).reshape(-1, size, 8)).reshape(tokens.shape)
        return self.head(tokens.mean(1))


@pytest.mark.parametrize("attention", ["fused", "written_out", "torch"])
@pytest.mark.parametrize("last", [False, True])
def test_windowed_attention_is_refused(attention: str, last: bool) -> None:
    """Sixteen tokens of a window would lay out as a 4 × 4 grid, as if they were the whole picture."""
    with pytest.raises(NotApplicable, match="this network's is windowed"):
        AttentionRollout()(Model("windowed", Windowed(attention, last)), batch(2))


def test_a_network_without_attention_is_refused_with_what_to_take_instead() -> None:
    with pytest.raises(NotApplicable, match="no attention over tokens: take grad_cam or integrated_gradients"):
        AttentionRollout()(small_cnn(), batch(1))


class ByChannel(nn.Module):
    """Attention of sixteen channels to each other, as in XCiT: its rows and columns are no places."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm, self.head = nn.Conv2d(3, 16, 4, 4), nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.norm(self.embed(x).flatten(2).transpose(1, 2))
        mixed = tokens @ (tokens.transpose(1, 2) @ tokens).softmax(-1)
        return self.head(mixed.mean(1))


def test_attention_between_channels_is_refused() -> None:
    with pytest.raises(NotApplicable, match="no attention over tokens"):
        AttentionRollout()(Model("by_channel", ByChannel()), batch(2))


class Registers(nn.Module):
    """A ViT whose patches follow some other tokens: none, a class token, a distillation token, registers."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.inner = SmallViT()
        self.inner.cls_token = nn.Parameter(torch.randn(1, first, 24))

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.inner.patch_embed(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.inner.cls_token.expand(len(x), -1, -1), tokens], 1)
        return self.inner.head(self.inner.blocks(tokens)[:, 0])


@pytest.mark.parametrize("first", [0, 1, 2, 5])
def test_tokens_before_the_patches_do_no_harm(first: int) -> None:
    maps = AttentionRollout()(Model("registers", Registers(first)), batch(2))
    assert maps.shape == (2, 32, 32)
    assert float(maps.std()) > 0


class Positioned(nn.Module):
    """Attention under a mask of either kind, given in one way or another, as in BEiT; then the plain sum of both."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.norm, self.qkv, self.kind = nn.LayerNorm(16), nn.Linear(16, 48), kind
        numbers = 3 * torch.randn(17, 17)
        self.register_buffer("mask", numbers > -2 if "truths" in kind else numbers)

    def attention(self, x: Tensor) -> Tensor:
        q, k, _ = self.qkv(self.norm(x)).chunk(3, -1)
        added = torch.where(self.mask, 0.0, -torch.inf) if "truths" in self.kind else self.mask
        return (q @ k.mT / 4 + added).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        if "by place" in self.kind:
            return x + F.scaled_dot_product_attention(q, k, v, self.mask, 0.0)
        return x + F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, scale=0.25)


@pytest.mark.parametrize("kind", ["numbers", "truths", "numbers, by place", "truths, by place"])
def test_attention_under_a_mask_is_what_the_mask_leaves_of_it(kind: str) -> None:
    torch.manual_seed(0)
    network, pictures = Patches(Positioned(kind)).eval(), batch(2)
    with torch.no_grad():
        looked = rollout([network.over.attention(network.tokens(pictures.images))], 0.5)[:, 0, 1:].reshape(2, 4, 4)
    model = Model("positioned", network)
    assert attends(model, pictures.images)
    assert token_layer(model, pictures.images) == "over.norm"
    assert torch.allclose(AttentionRollout()(model, pictures), upsample(looked, pictures.images), rtol=1e-4)
