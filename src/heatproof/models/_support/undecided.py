"""Recognises a network that answers almost evenly, or the same whatever it is shown, as untrained ones do.

Measured on 8 photos: random ResNet-18, MobileNetV2 and ViT have an entropy of 0.92 to 1.0 of the largest possible one,
and the first two 2 to 10 % of the spread of their logits between pictures; a trained EfficientNet-Lite0 has 0.3 and
59 %, even on photos of one class.
"""

from __future__ import annotations

import math

from heatproof.types import Logits, Model

PICTURES = 8  # from the first of a data set on, to look at
EVEN, VAGUE = 0.95, 0.8  # of the largest possible entropy
DEAF = 0.15  # of the spread of the logits is between pictures
SEVERAL = 4  # pictures from which on that can be seen


def undecided(model: Model, logits: Logits) -> str:
    """What to be careful with, if the answers to these pictures are those of an untrained network; else empty."""
    pictures, classes = logits.shape
    if model.question != "classes" or classes < 2 or not pictures:
        return ""
    shares = logits.double().softmax(1)
    entropy = -(shares * shares.clamp(min=1e-300).log()).sum(1).mean().item() / math.log(classes)
    centred = logits.double() - logits.double().mean(1, keepdim=True)
    between = (centred.var(0, unbiased=False).mean() / centred.square().mean().clamp(min=1e-300)).item()
    same = pictures >= SEVERAL and between < DEAF and entropy > VAGUE
    if not (entropy > EVEN or same):
        return ""
    return (
        f"its highest probability is {100 * shares.amax(1).mean().item():.2g} % where an even answer would be "
        f"{100 / classes:.2g} %{', and it answers alike on all pictures' if same else ''}, as an untrained network "
        "does: are its weights loaded, and are pictures prepared as in its training? Heatmaps of it show nothing learnt"
    )
