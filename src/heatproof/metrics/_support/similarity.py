"""Similarity of two maps: 1 if equal, 0 if unrelated."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import rankdata
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.types import Maps

Similarity: TypeAlias = Literal["spearman", "pearson", "ssim"]

WINDOW = 7  # pixels, of SSIM; smaller pictures take the largest odd window that fits


def correlation(maps: Tensor, other: Tensor) -> Tensor:
    """(…, n) twice -> (…,): Pearson's correlation; NaN where one side is constant. NaN pairs are left out."""
    if not maps.shape[-1]:
        return maps.new_full(maps.shape[:-1], torch.nan, dtype=torch.float64)
    known = maps.isfinite() & other.isfinite()
    a, b = maps.double().where(known, 0.0), other.double().where(known, 0.0)
    count = known.sum(-1, keepdim=True)
    # Largest magnitudes 1, or squares of large or small numbers would leave the range of floats.
    a, b = (part / part.abs().amax(-1, keepdim=True).clamp_min(1e-300) for part in (a, b))
    a, b = ((part - part.sum(-1, keepdim=True) / count).where(known, 0.0) for part in (a, b))
    varies = (a.abs().amax(-1) > 1e-12) & (b.abs().amax(-1) > 1e-12)
    found = (a * b).sum(-1) / (a.square().sum(-1) * b.square().sum(-1)).sqrt()
    return torch.where(varies, found.clamp(-1, 1), torch.nan)


def rank_correlation(maps: Tensor, other: Tensor) -> Tensor:
    """(…, n) twice -> (…,): Spearman's correlation; ties share their mean rank, NaN pairs are left out."""
    if not maps.numel():
        return correlation(maps, other)
    known = maps.isfinite() & other.isfinite()
    ranked = [_ranks(values.where(known, torch.nan)) for values in (maps, other)]
    return correlation(*ranked)


def _ranks(values: Tensor) -> Tensor:
    found = rankdata(values.detach().double().cpu().numpy(), axis=-1, nan_policy="omit")
    return torch.from_numpy(np.asarray(found, dtype=np.float64)).to(values.device)


def ssim(maps: Maps, other: Maps) -> Tensor:
    """(B, H, W) twice -> (B,): the structural similarity index, over a moving 7 × 7 window.

    The data range is that of the two maps together; NaN where both are the same constant.
    """
    first, second = maps.double(), other.double()
    both = torch.stack([first.flatten(1), second.flatten(1)], 1).flatten(1)
    span = both.amax(1) - both.amin(1)
    unit = both.abs().amax(1).clamp_min(1e-300).view(-1, 1, 1)  # only ratios matter, and squares may overflow
    first, second, reach = first / unit, second / unit, span.view(-1, 1, 1) / unit
    side = min(WINDOW, *maps.shape[1:])
    side -= 1 - side % 2
    unbiased = side**2 / max(1, side**2 - 1)

    def mean(values: Tensor) -> Tensor:
        return F.avg_pool2d(values[:, None], side, 1)[:, 0]

    mu_a, mu_b = mean(first), mean(second)
    var_a = (mean(first.square()) - mu_a.square()) * unbiased
    var_b = (mean(second.square()) - mu_b.square()) * unbiased
    joint = (mean(first * second) - mu_a * mu_b) * unbiased
    c1, c2 = (0.01 * reach) ** 2, (0.03 * reach) ** 2
    above = (2 * mu_a * mu_b + c1) * (2 * joint + c2)
    below = (mu_a.square() + mu_b.square() + c1) * (var_a + var_b + c2)
    return torch.where(span > 0, (above / below).mean((1, 2)), torch.nan)


def similar(maps: Maps, other: Maps, measure: Similarity) -> Tensor:
    """(B,) float64 on the CPU; NaN where the measure has no value. Correlations ignore the maps' units.

    For SSIM each map is divided by its largest magnitude first.
    """
    maps, other = maps.cpu(), other.cpu()
    match measure:
        case "pearson":
            return correlation(maps.flatten(1), other.flatten(1))
        case "spearman":
            return rank_correlation(maps.flatten(1), other.flatten(1))
        case "ssim":
            return ssim(_unit(maps), _unit(other))
    raise BadInput(f"similarity must be one of {', '.join(get_args(Similarity))}, got {measure!r}")


def _unit(maps: Maps) -> Maps:
    largest = maps.double().abs().flatten(1).amax(1).clamp_min(1e-300).view(-1, 1, 1)
    return maps.double() / largest
