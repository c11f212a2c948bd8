"""A CLIP or SigLIP that has read its texts: what is left of its two towers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heatproof.errors import BadModel
from heatproof.types import View

AT_ONCE = 64  # texts in a forward pass of the text tower


@dataclass(frozen=True, eq=False)
class Towers:
    """An image encoder, the features of texts, and what turns their cosine into a logit."""

    image: nn.Module
    texts: Tensor  # (texts, width)
    scale: float
    bias: float | None  # SigLIP's: each text is a yes or no of its own
    mean: tuple[float, ...]
    std: tuple[float, ...]
    view: View


def in_parts(features: Callable[[Sequence[str]], Tensor], texts: Sequence[str]) -> Tensor:
    """Features of all texts, a few at once."""
    starts = range(0, len(texts), AT_ONCE)
    with torch.no_grad():
        return torch.cat([features(texts[first : first + AT_ONCE]).float() for first in starts])


def without_text(spec: str, got: str) -> BadModel:
    """The error for a network that cannot read texts."""
    return BadModel(
        f"{spec} must be a CLIP or SigLIP with both towers, and this one has no text tower ({got}): take the whole "
        "network; or compute the text features elsewhere and pass them, "
        "heatproof.Model.zero_shot(image_encoder, text_features)"
    )
