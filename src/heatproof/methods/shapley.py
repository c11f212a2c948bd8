"""Shapley values of segments, exact or along random orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator

from heatproof.errors import BadInput
from heatproof.methods._support.coalitions import MOST_ENUMERATED, Efficient, Plan, exact_shapley, sampled_shapley
from heatproof.registry import method


@method
@dataclass(frozen=True)
class Shapley(Efficient):
    """A segment's average marginal contribution over all orders in which segments can appear.

    Paper: Castro et al. 2009, "Polynomial Calculation of the Shapley Value Based on Sampling"
    """

    random: ClassVar[bool] = True

    permutations: int = 20  # half of them drawn, half their reverses
    exact_up_to: int = 12  # segments; up to this number all coalitions are evaluated instead

    def __post_init__(self) -> None:
        if self.permutations < 2 or self.permutations % 2:
            raise BadInput(f"permutations must be an even number from 2, got {self.permutations}")
        if not 0 <= self.exact_up_to <= MOST_ENUMERATED:
            raise BadInput(f"exact_up_to must be from 0 to {MOST_ENUMERATED}, got {self.exact_up_to}")

    def plan(self, n: int, generator: Generator) -> Plan:
        return exact_shapley(n) if n <= self.exact_up_to else sampled_shapley(n, self.permutations, generator)

    def evaluations(self, n: int) -> int:
        return int(2**n) if n <= self.exact_up_to else self.permutations * (n - 1) + 2
