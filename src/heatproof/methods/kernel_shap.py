"""Shapley values of segments by a weighted regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator

from heatproof.methods._support.coalitions import Efficient, Plan, regressed_shapley
from heatproof.methods._support.field_checks import check_count
from heatproof.registry import method


@method
@dataclass(frozen=True)
class KernelShap(Efficient):
    """Shapley values by weighted least squares on random coalitions and their complements.

    A picture of n segments needs at least 2 (n - 1) samples; with fewer, some segments cannot be separated.

    Paper: Lundberg and Lee 2017, "A Unified Approach to Interpreting Model Predictions"
    """

    random: ClassVar[bool] = True

    samples: int = 400

    def __post_init__(self) -> None:
        check_count("samples", self.samples, least=4)

    def plan(self, n: int, generator: Generator) -> Plan:
        return regressed_shapley(n, self.samples, generator)

    def evaluations(self, n: int) -> int:
        return 2 + min(self.samples, int(2**n) - 2)
