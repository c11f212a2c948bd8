"""Sparseness: how few pixels carry a map's weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.metrics._support.pixel_ranking import Sign, signed
from heatproof.metrics._support.undefined import ZERO_MAP, is_zero, scored
from heatproof.registry import metric
from heatproof.types import Attribution, Price, Scored


def gini(values: Tensor) -> Tensor:
    """(…, n) non-negative -> (…,): 0 if all are equal, towards 1 if one of them holds everything."""
    ascending = values.double().sort(-1).values
    count = ascending.shape[-1]
    weights = 2 * torch.arange(1, count + 1, dtype=torch.float64, device=values.device) - count - 1
    return (weights * ascending).sum(-1) / (count * ascending.sum(-1))


@metric
@dataclass(frozen=True)
class Sparseness:
    """The Gini index of a map: 0 if all pixels weigh the same, towards 1 if few carry everything.

    It describes a map and does not judge it: a map may be sparse and wrong.

    Paper: Chalasani et al. 2020, "Concise Explanations of Neural Networks using Adversarial Training"
    """

    sign: Literal["absolute", "positive"] = "absolute"

    higher_is_better: ClassVar[bool] = True  # higher is sparser
    measures: ClassVar[Literal["description"]] = "description"
    chance: ClassVar[float] = math.sqrt(2) - 1  # magnitudes of Gaussian noise

    def __call__(self, attribution: Attribution, /) -> Scored:
        weights = signed(attribution.maps, _rule(self.sign)).cpu()
        return scored(gini(weights.flatten(1)), {ZERO_MAP: is_zero(weights)})

    def cost(self) -> Price:
        return Price()


def _rule(sign: Literal["absolute", "positive"]) -> Sign:
    return sign
