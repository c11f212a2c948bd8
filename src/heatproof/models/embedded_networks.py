"""Small architectures for 64×64 pictures: residual with batch norm, plain, and vision transformers.

Every rectifier is a module of its own, never in place, so that hooks see it. The transformer names its parts as timm
does (`patch_embed`, `blocks[i].attn.qkv`, …), so that code that works here works there.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """A residual block: two convolutions and a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.relu2 = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(images)))))
        return self.relu2(inner + self.shortcut(images))  # type: ignore[no-any-return]


class ResNet(nn.Module):
    """A residual network with batch norm; the last map is 8×8."""

    def __init__(self, classes: int = 10, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 5, 2, 2, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.layer1 = Residual(width, 2 * width, 2)
        self.layer2 = Residual(2 * width, 4 * width, 2)
        self.layer3 = Residual(4 * width, 4 * width, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.layer3(self.layer2(self.layer1(self.stem(images))))
        return self.fc(self.pool(maps).flatten(1))  # type: ignore[no-any-return]


class PlainNet(nn.Module):
    """A plain network of convolutions, rectifiers and pooling; the last map is 8×8."""

    def __init__(self, classes: int = 10, width: int = 16) -> None:
        super().__init__()
        steps: list[nn.Module] = [nn.Conv2d(3, width, 5, 2, 2), nn.ReLU()]
        for before, after, pool in ((1, 2, True), (2, 4, True), (4, 4, False)):
            steps += [nn.Conv2d(before * width, after * width, 3, 1, 1), nn.ReLU()]
            steps += [nn.MaxPool2d(2)] if pool else []
        self.features = nn.Sequential(*steps)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(4 * width, classes)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):  # without batch norm the scale must be right from the start
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
                nn.init.zeros_(part.bias)  # type: ignore[arg-type]

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.pool(self.features(images)).flatten(1))  # type: ignore[no-any-return]


class PatchEmbed(nn.Module):
    """The embedding of non-overlapping patches as tokens."""

    def __init__(self, patch: int, width: int, channels: int = 3) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, images: Tensor) -> Tensor:
        return self.proj(images).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Multi-head self-attention with an explicit softmax."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.scale = (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, count, width = tokens.shape
        q, k, v = self.qkv(tokens).reshape(batch, count, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) * self.scale).softmax(-1)
        return self.proj((attention @ v).transpose(1, 2).reshape(batch, count, width))  # type: ignore[no-any-return]


class Block(nn.Module):
    """One transformer layer, norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attn(self.norm1(tokens))
        return tokens + self.mlp(self.norm2(tokens))  # type: ignore[no-any-return]


class ViT(nn.Module):
    """A small vision transformer; it takes one input size only."""

    def __init__(
        self, classes: int = 10, size: int = 64, patch: int = 8, width: int = 96, depth: int = 4, heads: int = 4
    ) -> None:
        super().__init__()
        self.patch_size = patch
        self.patch_embed = PatchEmbed(patch, width)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 1 + (size // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def tokens(self, images: Tensor) -> Tensor:
        """The class token and the patches, with positions added."""
        patches = self.patch_embed(images)
        return torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], 1) + self.pos_embed

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(images)))[:, 0])  # type: ignore[no-any-return]


class HybridViT(ViT):
    """A transformer behind the first stages of the residual network; its tokens are 8×8 pixels apart."""

    def __init__(self, classes: int = 10, width: int = 96, depth: int = 3, stage: int = 16) -> None:
        super().__init__(classes, width=width, depth=depth)
        first = ResNet(classes, stage)
        self.stem, self.layer1, self.layer2 = first.stem, first.layer1, first.layer2
        self.patch_embed = PatchEmbed(1, width, 4 * stage)

    def tokens(self, images: Tensor) -> Tensor:
        return super().tokens(self.layer2(self.layer1(self.stem(images))))
