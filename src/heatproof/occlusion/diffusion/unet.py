"""A small UNet for 64×64 pictures: folded 2×2 into channels, three halvings, a little attention at the bottom.

Folding first makes every convolution four times cheaper, so that the embedded prior can be trained and used on a CPU.
Folding 4×4 is cheaper still, but squeezes the noise of 48 numbers through 64 channels and learns markedly less in the
same time.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Time(nn.Module):
    """The step number as sines and cosines, then two dense layers."""

    def __init__(self, width: int, after: int) -> None:
        super().__init__()
        self.width = width
        self.dense1 = nn.Linear(width, after)
        self.dense2 = nn.Linear(after, after)

    def forward(self, t: Tensor) -> Tensor:
        half = self.width // 2
        steps = torch.arange(half, device=t.device, dtype=torch.float32)
        angles = t.float()[:, None] * torch.exp(-math.log(10000) / half * steps)
        waves = torch.cat([angles.sin(), angles.cos()], 1).to(self.dense1.weight.dtype)
        return self.dense2(functional.silu(self.dense1(waves)))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """Two convolutions, shifted and scaled by the time, and a shortcut."""

    def __init__(self, before: int, after: int, time: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(8, before)
        self.conv1 = nn.Conv2d(before, after, 3, padding=1)
        self.time = nn.Linear(time, 2 * after)
        self.norm2 = nn.GroupNorm(8, after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1)
        self.shortcut: nn.Module = nn.Conv2d(before, after, 1) if before != after else nn.Identity()
        nn.init.zeros_(self.conv2.weight)

    def forward(self, maps: Tensor, time: Tensor) -> Tensor:
        inner = self.conv1(functional.silu(self.norm1(maps)))
        scale, shift = self.time(functional.silu(time))[:, :, None, None].chunk(2, 1)
        inner = self.norm2(inner) * (1 + scale) + shift
        return self.conv2(functional.silu(inner)) + self.shortcut(maps)  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Self-attention between all places of a small map."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, width)
        self.qkv = nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)
        nn.init.zeros_(self.out.weight)

    def forward(self, maps: Tensor) -> Tensor:
        count, width, high, wide = maps.shape
        parts = self.qkv(self.norm(maps)).reshape(count, 3, self.heads, width // self.heads, high * wide)
        q, k, v = parts.transpose(-1, -2).unbind(1)
        seen = functional.scaled_dot_product_attention(q, k, v)
        return maps + self.out(seen.transpose(-1, -2).reshape(count, width, high, wide))  # type: ignore[no-any-return]


class UNet(nn.Module):
    """`(x, t) -> v`: the velocity of a noisy picture in [-1, 1], at step t of 1000."""

    def __init__(self, channels: int = 3, widths: tuple[int, ...] = (32, 64, 96, 128), fold: int = 2) -> None:
        super().__init__()
        self.channels = channels
        self.widths = widths
        self.fold = fold
        self.multiple = fold * 2 ** (len(widths) - 1)  # sides must be divisible by this
        time = widths[-1]
        self.time = Time(widths[0], time)
        self.stem = nn.Conv2d(channels * fold**2, widths[0], 3, padding=1)
        inward = list(zip((widths[0], *widths[:-1]), widths, strict=True))
        self.down = nn.ModuleList(Residual(before, after, time) for before, after in inward)
        self.shrink = nn.ModuleList(nn.Conv2d(width, width, 3, 2, 1) for width in widths[:-1])
        self.middle1 = Residual(widths[-1], widths[-1], time)
        self.attention = Attention(widths[-1])
        self.middle2 = Residual(widths[-1], widths[-1], time)
        outward = list(zip((widths[-1], *widths[:0:-1]), widths[::-1], strict=True))
        self.up = nn.ModuleList(Residual(before + after, after, time) for before, after in outward)
        # Before the upsampling, not after it: four times cheaper.
        self.widen = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for width in widths[:0:-1])
        self.norm = nn.GroupNorm(8, widths[0])
        self.out = nn.Conv2d(widths[0], channels * fold**2, 3, padding=1)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        time = self.time(t)
        maps = self.stem(functional.pixel_unshuffle(x, self.fold))
        skips: list[Tensor] = []
        for level, block in enumerate(self.down):
            maps = block(self.shrink[level - 1](maps) if level else maps, time)
            skips.append(maps)
        maps = self.middle2(self.attention(self.middle1(maps, time)), time)
        for level, block in enumerate(self.up):
            if level:
                maps = functional.interpolate(self.widen[level - 1](maps), scale_factor=2.0, mode="nearest")
            maps = block(torch.cat([maps, skips.pop()], 1), time)
        return functional.pixel_shuffle(self.out(functional.silu(self.norm(maps))), self.fold)
