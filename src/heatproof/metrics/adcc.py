"""ADCC and its parts: coherency, the mask's area, and the average drop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.metrics._support.normalisation import normalise
from heatproof.metrics._support.reattribution import reattribute
from heatproof.metrics._support.similarity import correlation
from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.metrics.average_drop import Masked, masked, relative_drop
from heatproof.occlusion.imputers.mean import Mean
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.traits import Rule
from heatproof.types import Attribution, Imputer, Price, Scored


def harmonic_mean(*parts: Tensor) -> Tensor:
    """The harmonic mean of parts in [0, 1]; 0 where one of them is."""
    every = torch.stack(parts)
    return torch.where((every > 0).all(0), len(parts) / every.clamp_min(1e-300).reciprocal().sum(0), 0.0)


def coherency(attribution: Attribution, found: Masked, mask: Rule) -> Tensor:
    """(B,) in [0, 1]: the similarity of the map to the map of the masked picture; ½ if unrelated."""
    again = reattribute(attribution, batch=attribution.batch.showing(found.images))
    alike = correlation(found.masks.flatten(1).cpu(), normalise(again, mask).flatten(1).cpu())
    # A second map without contrast has nothing in common with a first one that has some.
    alike = torch.where(is_constant(again).cpu(), 0.0, alike)
    return (alike + 1) / 2


@dataclass(frozen=True)
class CoherentMask:
    """The base of ADCC's parts: how the map becomes a mask, and what replaces masked pixels."""

    unfit: ClassVar[Unfit] = (("value", "it judges by the probability of the class"),)

    imputer: Imputer = field(default_factory=Mean)
    mask: Rule = "positive"

    higher_is_better: ClassVar[bool] = True

    def cost(self) -> Price:
        return Price(forward=1, shared=1, explanations=1)


@metric
@dataclass(frozen=True)
class Coherency(CoherentMask):
    """How similar the map stays when it masks the picture: (1 + Pearson's correlation) / 2.

    The explained class stays the same. ½ for unrelated maps.

    Paper: Poppi et al. 2021, "Revisiting The Evaluation of Class Activation Mapping for Explainability: A Novel Metric
    and Experimental Analysis"
    """

    measures: ClassVar[Literal["robustness"]] = "robustness"
    chance: ClassVar[float] = 0.5

    def __call__(self, attribution: Attribution, /) -> Scored:
        found = masked(attribution, self.imputer, self.mask)
        return scored(coherency(attribution, found, self.mask), {CONSTANT_MAP: is_constant(found.masks).cpu()})


@metric
@dataclass(frozen=True)
class MaskArea:
    """The mean of the map as a mask in [0, 1]: how much of the picture it lets through.

    It describes a map and does not judge it.

    Paper: Poppi et al. 2021, "Revisiting The Evaluation of Class Activation Mapping for Explainability: A Novel Metric
    and Experimental Analysis" (there complexity)
    """

    mask: Rule = "positive"

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["description"]] = "description"

    def __call__(self, attribution: Attribution, /) -> Scored:
        return scored(normalise(attribution.maps, self.mask).double().mean((1, 2)), {})

    def cost(self) -> Price:
        return Price()


@metric("adcc")
@dataclass(frozen=True)
class ADCC(CoherentMask):
    """The harmonic mean of coherency, 1 - mask area, and the kept share of the probability.

    It is 0 if a part is 0. Redrawn noise scores up to 0.6, since a noisy mask lets half of the picture through.

    Paper: Poppi et al. 2021, "Revisiting The Evaluation of Class Activation Mapping for Explainability: A Novel Metric
    and Experimental Analysis"
    """

    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __call__(self, attribution: Attribution, /) -> Scored:
        found = masked(attribution, self.imputer, self.mask)
        parts = {
            "coherency": coherency(attribution, found, self.mask),
            "mask_area": found.masks.double().mean((1, 2)).cpu(),
            "average_drop": relative_drop(found.before, found.after),
        }
        values = harmonic_mean(parts["coherency"], 1 - parts["mask_area"], 1 - parts["average_drop"])
        undefined = {
            CONSTANT_MAP: is_constant(found.masks).cpu(),
            "the class has no probability to lose": parts["average_drop"].isnan(),
        }
        return scored(values, undefined, parts)
