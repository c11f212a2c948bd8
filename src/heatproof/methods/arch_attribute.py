"""ArchAttribute: what each segment is worth when it is shown first."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Generator

from heatproof.methods._support.coalitions import Coalitional, Plan, first_gains
from heatproof.registry import method


@method
@dataclass(frozen=True)
class ArchAttribute(Coalitional):
    """The rise of the answer when a segment alone is shown: its first marginal contribution.

    Paper: Tsang et al. 2020, "How Does This Interaction Affect Me? Interpretable Attribution for Feature
    Interactions"
    """

    def plan(self, n: int, generator: Generator) -> Plan:
        return first_gains(n)

    def evaluations(self, n: int) -> int:
        return n + 1
