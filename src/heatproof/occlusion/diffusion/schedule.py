"""Noise schedules: the noise level at each step, and the steps that are visited."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput

STEPS = 1000  # the grid of noise levels that priors are trained on


def alphas_cumprod(kind: Literal["linear", "cosine"] = "linear", steps: int = STEPS) -> Tensor:
    """The share of the picture's power that is left at each step, in float64: from nearly 1 to nearly 0."""
    if kind == "linear":
        betas = torch.linspace(0.1 / steps, 20 / steps, steps, dtype=torch.float64)
        return (1 - betas).cumprod(0)
    times = torch.arange(steps + 1, dtype=torch.float64) / steps
    shares = ((times + 0.008) / 1.008 * torch.pi / 2).cos().square()
    betas = (1 - shares[1:] / shares[:-1]).clamp(max=0.999)
    return (1 - betas).cumprod(0)


def trailing(steps: int, total: int = STEPS) -> list[int]:
    """`steps` step numbers from the noisiest downwards, evenly spaced, always with the last of the schedule."""
    if not 1 <= steps <= total:
        raise BadInput(f"the number of sampling steps must be from 1 to {total}, got {steps}")
    return [round(total - i * total / steps) - 1 for i in range(steps)]
