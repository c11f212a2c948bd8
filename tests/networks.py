"""Three small networks and a linear one, seeded, for 3×32×32 pictures and 10 classes, and pictures."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heatproof.types import Batch, Model

MEAN = (0.45, 0.5, 0.4)
STD = (0.25, 0.2, 0.3)
SIZE = 32
CLASSES = 10
# Methods that explain attention over tokens, and no network without it.
TOKENS = (
    *("attention_gradient_cam", "attention_rollout", "attn_lrp", "generic_attention", "legrad"),
    "transformer_lrp",
)


class SmallCNN(nn.Module):
    """Plain convolutions and ReLU modules."""

    def __init__(self, inplace: bool = False, bias: bool = True) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=bias),
            nn.ReLU(inplace),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, padding=1, bias=bias),
            nn.ReLU(inplace),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1, bias=bias),
            nn.ReLU(inplace),
        )
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 24, bias=bias), nn.ReLU(inplace), nn.Linear(24, CLASSES, bias=bias)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.features(x)))


class ResidualBlock(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = (
            nn.Identity()
            if inside == outside and stride == 1
            else nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
        )

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return self.relu(out)


class SmallResNet(nn.Module):
    """Residual sums, batch norms with statistics of their own, and an in-place ReLU used twice per block."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.layers = nn.Sequential(ResidualBlock(8, 8, 1), ResidualBlock(8, 16, 2), ResidualBlock(16, 16, 2))
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


class Attention(nn.Module):
    """Fused qkv, as in timm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        count, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(count, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(count, tokens, width))


class TransformerBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SmallViT(nn.Module):
    """8×8 patches, a class token, two blocks."""

    def __init__(self, width: int = 24, heads: int = 3) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, 8, 8)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        self.blocks = nn.Sequential(TransformerBlock(width, heads), TransformerBlock(width, heads))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patch_embed(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), tokens], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(tokens))[:, 0])


class Linear(nn.Module):
    """f = Wx, no bias."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3 * SIZE * SIZE, CLASSES, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.flatten(1))


def seeded(make: type[nn.Module], seed: int = 0, **fields: bool) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make(**fields)
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                # Statistics other than 0 and 1, or merging a batch norm would be tested on identities.
                module.running_mean.normal_(0, 0.3)
                module.running_var.uniform_(0.5, 1.5)
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, 0, 0.2)
    return network.eval()


def small_cnn(**fields: bool) -> Model:
    return Model("small_cnn", seeded(SmallCNN, **fields), MEAN, STD)


def small_resnet() -> Model:
    return Model("small_resnet", seeded(SmallResNet), MEAN, STD)


def small_vit() -> Model:
    return Model("small_vit", seeded(SmallViT), MEAN, STD, fixed_size=True)


def linear() -> Model:
    """No normalisation either: logits are exactly W times the picture."""
    return Model("linear", seeded(Linear))


def pictures(count: int = 3, seed: int = 0, size: int = SIZE) -> Tensor:
    """Smooth random pictures in [0, 1]."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 3, 8, 8, generator=generator)
    fine = torch.rand(count, 3, size, size, generator=generator)
    return (0.7 * F.interpolate(coarse, (size, size), mode="bilinear") + 0.3 * fine).clamp(0, 1)


def batch(count: int = 3, seed: int = 0, size: int = SIZE) -> Batch:
    """Pictures with targets 0, 1, 2, … and a square region each."""
    regions = torch.zeros(count, size, size, dtype=torch.bool)
    regions[:, size // 4 : size // 2, size // 4 : size // 2] = True
    ids = tuple(f"picture{i}" for i in range(count))
    return Batch(pictures(count, seed, size), torch.arange(count) % CLASSES, ids, regions, seed=seed)
