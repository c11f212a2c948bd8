"""PredDiff: what each segment is worth when it is added last."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Generator

from heatproof.methods._support.coalitions import Coalitional, Plan, last_gains
from heatproof.registry import method


@method
@dataclass(frozen=True)
class PredDiff(Coalitional):
    """The drop of the answer when a segment leaves the whole picture: its last marginal contribution.

    Paper: Blücher et al. 2022, "PredDiff: Explanations and Interactions from Conditional Expectations"
    """

    def plan(self, n: int, generator: Generator) -> Plan:
        return last_gains(n)

    def evaluations(self, n: int) -> int:
        return n + 1
