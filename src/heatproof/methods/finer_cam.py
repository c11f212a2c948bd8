"""Finer-CAM: Grad-CAM of what tells a class from the classes most like it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.methods._support.field_checks import check_count, check_not_negative
from heatproof.methods._support.layer_activations import taps_of
from heatproof.methods._support.upsample import upsample
from heatproof.methods.cam import as_seen, cam_layer, coarse_map, weigh
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Logits, Maps, Model


def difference(logits: Logits, targets: Tensor, others: int, alpha: float) -> Tensor:
    """The target's logit minus alpha times those of its nearest classes, averaged by their probabilities: (rows,)."""
    own = logits.gather(1, targets[:, None])
    distance = (logits - own).abs().detach().scatter(1, targets[:, None], torch.inf)  # never its own rival
    rivals = distance.topk(min(others, logits.shape[1] - 1), 1, largest=False).indices
    shares = logits.softmax(1).gather(1, rivals)
    gaps = own - alpha * logits.gather(1, rivals)
    return (shares * gaps).sum(1) / (shares.sum(1) + 1e-9)


@method("finer_cam")
@dataclass(frozen=True)
class FinerCam:
    """Grad-CAM of the target's logit minus those of the classes nearest to it: what tells it from its like.

    The `others` classes whose logits are nearest to the target's are weighted by their probabilities; `alpha` is how
    much of them is subtracted. `layer` as in grad_cam.

    Paper: Zhang et al. 2025, "Finer-CAM: Spotting the Difference Reveals Finer Details for Visual Explanation"
    """

    unfit: ClassVar[Unfit] = (("value", "there are no other classes to tell it from"),)

    normalisation: ClassVar[Rule] = "positive"

    layer: str = ""
    others: int = 3
    alpha: float = 1.0
    relu: bool = True

    caution = coarse_map

    def __post_init__(self) -> None:
        check_count("others", self.others)
        check_not_negative("alpha", self.alpha)

    @property
    def signed(self) -> bool:
        return not self.relu

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        question = partial(difference, others=self.others, alpha=self.alpha)
        (caught,) = taps_of(model, batch, [self.layer or cam_layer(model, batch)], question)
        seen = as_seen(caught, batch)
        return upsample(weigh(seen.activations, seen.gradients.mean((2, 3), keepdim=True), self.relu), batch.images)

    def cost(self) -> Cost:
        return Cost(1, 1)
