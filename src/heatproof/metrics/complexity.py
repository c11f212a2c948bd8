"""Complexity: over how many pixels a map spreads its weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.metrics._support.pixel_ranking import signed
from heatproof.metrics._support.undefined import ZERO_MAP, is_zero, scored
from heatproof.registry import metric
from heatproof.types import Attribution, Price, Scored


def entropy(weights: Tensor) -> Tensor:
    """(…, n) non-negative -> (…,): the entropy, in nats, of the weights as a distribution; 0 ln 0 is 0."""
    values = weights.double()
    shares = values / values.sum(-1, keepdim=True)
    terms: Tensor = torch.special.xlogy(shares, shares)
    return -terms.sum(-1)


@metric
@dataclass(frozen=True)
class Complexity:
    """The entropy of a map's weights, from 0 (one pixel) to the logarithm of the number of pixels (all alike).

    It describes a map and does not judge it: a map may be simple and wrong. The detail `pixels` is exp(entropy) as a
    share of the pixels, which compares between picture sizes.

    Paper: Bhatt et al. 2020, "Evaluating and Aggregating Feature-based Model Explanations"
    """

    sign: Literal["absolute", "positive"] = "absolute"

    higher_is_better: ClassVar[bool] = False  # lower is simpler
    measures: ClassVar[Literal["description"]] = "description"

    def __call__(self, attribution: Attribution, /) -> Scored:
        weights = signed(attribution.maps, self.sign).flatten(1).cpu()
        found = entropy(weights)
        return scored(found, {ZERO_MAP: is_zero(weights)}, {"pixels": (found - math.log(weights.shape[1])).exp()})

    def cost(self) -> Price:
        return Price()
