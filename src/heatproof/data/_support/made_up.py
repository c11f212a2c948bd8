"""Synthetic pictures for trying networks: fixed ones, or ones that cannot be predicted."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from heatproof.types import Images


def pictures(shape: Sequence[int], count: int) -> Images:
    """`count` pictures of shape (C, H, W), from smooth to rough; the same on every machine."""
    channels, height, width = shape
    generator = torch.Generator().manual_seed(0)
    rows = []
    for number in range(count):
        grain = (1, 4, 16)[number % 3]
        coarse = torch.rand(1, channels, -(-height // grain), -(-width // grain), generator=generator)
        rows.append(F.interpolate(coarse, size=(height, width), mode="bilinear"))
    return torch.cat(rows).clamp_(0, 1)


def unforeseen(shape: Sequence[int], count: int) -> Images:
    """Unpredictable pictures, drawn anew in every process, so that no file in a cache can be crafted to fit them.

    Their spectrum falls with frequency as a photo's does; from flat to harsh, from dark to bright.
    """
    channels, height, width = shape
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(8), "big") >> 1)
    frequency = (
        torch.fft.fftfreq(height)[:, None].hypot(torch.fft.rfftfreq(width)[None]).clamp_min(1 / max(height, width))
    )
    white = torch.randn(count, channels, height, width, generator=generator)
    steepness = 1.5 * torch.rand(count, 1, 1, 1, generator=generator)
    rows = torch.fft.irfft2(torch.fft.rfft2(white) / frequency**steepness, s=(height, width))
    rows = (rows - rows.mean((1, 2, 3), keepdim=True)) / rows.std((1, 2, 3), keepdim=True).clamp_min(1e-6)
    contrast, brightness = torch.rand(2, count, 1, 1, 1, generator=generator)
    drawn: Images = (brightness + 0.5 * contrast * rows).nan_to_num(0.5).clamp_(0, 1)
    return drawn
