"""Average drop, increase and gain: the model's confidence when the picture is masked by its map."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from heatproof.metrics._support.normalisation import normalise
from heatproof.metrics._support.shared_answers import logits
from heatproof.metrics._support.undefined import scored
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.occluded_images import shown
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.traits import Rule
from heatproof.types import Attribution, Batch, Images, Imputer, Maps, Model, Price, Scored


class Masked(NamedTuple):
    """The picture masked by its map: the masks, the pictures, and the probability before and after, (B,) each."""

    masks: Maps
    images: Images
    before: Tensor
    after: Tensor


def emptied(batch: Batch, imputer: Imputer) -> Images:
    """Each picture with all pixels imputed."""
    count, _, height, width = batch.images.shape
    nothing = torch.zeros(count, 1, height, width, dtype=torch.bool, device=batch.images.device)
    return shown(batch, nothing, Occlusion(imputer, draws=1))[:, 0] if count else batch.images


def confidence(model: Model, batch: Batch, images: Images) -> Tensor:
    """(B,) float64 on the CPU: the probability of each picture's explained class."""
    return model.read(logits(model, images), batch.targets, "probability").double().cpu()


def masked(attribution: Attribution, imputer: Imputer, mask: Rule) -> Masked:
    """Pictures blended with their imputed version by the mask: 1 keeps a pixel, 0 replaces it."""
    model, batch = attribution.model, attribution.batch
    masks = normalise(attribution.maps, mask)
    images = torch.lerp(emptied(batch, imputer), batch.images, masks[:, None].to(batch.images)).clamp(0, 1)
    return Masked(masks, images, confidence(model, batch, batch.images), confidence(model, batch, images))


def relative_drop(before: Tensor, after: Tensor) -> Tensor:
    """The lost share of the probability; 0 if it grows, NaN if it was 0."""
    return (before - after).clamp_min(0) / before


@dataclass(frozen=True)
class ThroughMask:
    """The base of the three: the map becomes a mask in [0, 1], which the picture is multiplied by.

    `positive` is the map's positive part over its maximum. Where the mask is 0, the imputer fills the picture. A mask
    of ones drops nothing, so read every score beside the detail `mask_area`, the mask's mean.
    """

    unfit: ClassVar[Unfit] = (("value", "it judges by the probability of the class"),)

    imputer: Imputer = field(default_factory=Mean)
    mask: Rule = "positive"

    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def _scored(self, found: Masked, values: Tensor, reason: str) -> Scored:
        details = {
            "mask_area": found.masks.double().mean((1, 2)),
            "before": found.before,
            "after": found.after,
        }
        return scored(values, {reason: values.isnan()}, details)

    def cost(self) -> Price:
        return Price(forward=1, shared=1)


@metric
@dataclass(frozen=True)
class AverageDrop(ThroughMask):
    """The lost share of the class's probability when the picture is masked by its map.

    Paper: Chattopadhay et al. 2018, "Grad-CAM++: Generalized Gradient-based Visual Explanations for Deep Convolutional
    Networks"
    """

    higher_is_better: ClassVar[bool] = False

    def __call__(self, attribution: Attribution, /) -> Scored:
        found = masked(attribution, self.imputer, self.mask)
        return self._scored(found, relative_drop(found.before, found.after), "the class has no probability to lose")


@metric
@dataclass(frozen=True)
class AverageIncrease(ThroughMask):
    """Whether the class's probability grows when the picture is masked by its map: 1 or 0.

    Paper: Chattopadhay et al. 2018, "Grad-CAM++: Generalized Gradient-based Visual Explanations for Deep Convolutional
    Networks"
    """

    higher_is_better: ClassVar[bool] = True
    share: ClassVar[bool] = True  # of pictures

    def __call__(self, attribution: Attribution, /) -> Scored:
        found = masked(attribution, self.imputer, self.mask)
        return self._scored(found, (found.after > found.before).double(), "there is no probability")


@metric
@dataclass(frozen=True)
class AverageGain(ThroughMask):
    """The gain in the class's probability, as a share of the possible gain, when the picture is masked by its map.

    Paper: Zhang et al. 2023, "Opti-CAM: Optimizing saliency maps for interpretability"
    """

    higher_is_better: ClassVar[bool] = True

    def __call__(self, attribution: Attribution, /) -> Scored:
        found = masked(attribution, self.imputer, self.mask)
        gained = (found.after - found.before).clamp_min(0) / (1 - found.before)
        return self._scored(found, gained, "the class has all the probability already")


for _name, _kind in (
    ("AverageDropMetric", AverageDrop),
    ("AverageIncreaseMetric", AverageIncrease),
    ("AverageGainMetric", AverageGain),
):
    metric.alias(
        _name, _kind, "xplique. There a map's sign is dropped, and a constant map is an empty mask.", mask="abs_min_max"
    )
metric.alias(
    "DropInConfidence",
    AverageDrop,
    "pytorch-grad-cam. There the drop is not divided by the probability, and is of the logit unless set otherwise.",
    mask="min_max",
)
