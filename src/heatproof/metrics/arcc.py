"""ARCC: ADCC with ROAD in place of the average drop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.metrics.adcc import coherency, harmonic_mean
from heatproof.metrics.average_drop import masked
from heatproof.metrics.road import Road
from heatproof.occlusion.imputers.mean import Mean
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.traits import Rule
from heatproof.types import Attribution, Imputer, Price, Scored


@metric("arcc")
@dataclass(frozen=True)
class ARCC:
    """The harmonic mean of coherency, 1 - mask area, and ROAD's gain, clipped to [0, 1].

    ROAD's gain is the probability after removing the least important pixels minus that after removing the most
    important. A map that does not beat its own inverse has none, and scores 0.

    Paper: Gildenblat 2023, "pytorch-grad-cam" (its metric; the parts are Poppi et al. 2021 and Rong et al. 2022)
    """

    unfit: ClassVar[Unfit] = (("value", "it judges by the probability of the class"),)

    road: Road = field(default_factory=lambda: Road(shares=(0.2, 0.4, 0.6, 0.8)))
    imputer: Imputer = field(default_factory=Mean)
    mask: Rule = "positive"

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __call__(self, attribution: Attribution, /) -> Scored:
        found = masked(attribution, self.imputer, self.mask)
        parts = {
            "coherency": coherency(attribution, found, self.mask),
            "mask_area": found.masks.double().mean((1, 2)).cpu(),
            "road": self.road(attribution).values.double(),
        }
        gain = (2 * parts["road"]).clamp(0, 1)
        values = harmonic_mean(parts["coherency"], 1 - parts["mask_area"], gain)
        return scored(values, {CONSTANT_MAP: is_constant(found.masks).cpu()}, parts)

    def cost(self) -> Price:
        return Price(forward=1 + 2 * len(self.road.shares), shared=2, explanations=1)
