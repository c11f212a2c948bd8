"""Zero-shot classifiers: an image encoder against fixed text features of every class, as in CLIP and SigLIP."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heatproof.errors import BadInput, BadModel

_FEATURES = ("image_embeds", "text_embeds", "pooler_output")  # where transformers keeps them


class ZeroShot(nn.Module):
    """Logits: `scale` times the cosine of a picture's features with those of each class, plus `bias`.

    Text features are computed once, before, so that they are the weights of a linear layer behind features of length 1.
    """

    def __init__(self, encoder: nn.Module, text_features: Tensor, scale: float = 100.0, bias: float = 0.0) -> None:
        super().__init__()
        classes = class_features(text_features)
        self.encoder = encoder
        self.head = nn.Linear(classes.shape[1], classes.shape[0], bias=bias != 0).to(classes)
        with torch.no_grad():
            self.head.weight.copy_(scale * classes)
            if bias != 0:
                self.head.bias.fill_(bias)

    def forward(self, images: Tensor) -> Tensor:
        features = features_of(self.encoder(images))
        if features.shape[1] != self.head.in_features:
            raise BadModel(
                f"the image encoder gives {features.shape[1]} features per picture, and the text features have "
                f"{self.head.in_features}: both must come from one network, after its projections"
            )
        return self.head(F.normalize(features, dim=1))  # type: ignore[no-any-return]


def class_features(text_features: Tensor) -> Tensor:
    """One vector of length 1 per class: of (classes, width), or the mean over templates of (classes, templates, width).

    Each template counts the same: features are normalised before the mean is taken, too.
    """
    if text_features.ndim not in (2, 3) or not text_features.numel() or not text_features.is_floating_point():
        raise BadInput(
            "text features must be numbers of shape (classes, width) or (classes, templates, width), got "
            f"{tuple(text_features.shape)} {text_features.dtype}"
        )
    lengths = text_features.detach().norm(dim=-1)
    if not bool((lengths.isfinite() & (lengths > 0)).all()):
        raise BadInput("text features must be finite and not all zero: got some that are not")
    unit = F.normalize(text_features.detach().clone(), dim=-1)
    return unit if unit.ndim == 2 else F.normalize(unit.mean(1), dim=-1)


def features_of(answer: Any) -> Tensor:
    """The features (batch, width) that a tower answers with, bare or inside an output of transformers."""
    if not isinstance(answer, Tensor):
        found = (getattr(answer, name, None) for name in _FEATURES)
        answer = next((one for one in found if isinstance(one, Tensor)), answer)
    if not isinstance(answer, Tensor) or answer.ndim != 2:
        got = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise BadModel(
            f"an image encoder must answer with features (batch, width), got {got}: wrap it in a module that "
            "returns the projected features alone"
        )
    return answer
