"""HSIC attribution: how much the answer depends on whether a segment is visible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Generator, Tensor
from torch.quasirandom import SobolEngine

from heatproof.methods._support.coalitions import Coalitional, Estimate, Plan
from heatproof.methods._support.field_checks import check_count
from heatproof.occlusion.occlusion import Occlusion
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.registry import method

OutputKernel: TypeAlias = Literal["rbf", "linear"]


def output_kernel(values: Tensor, kind: OutputKernel) -> Tensor:
    """(M, M): how alike two answers are; the width of `rbf` is the median distance between answers that differ.

    The published code takes the median of the answers themselves, which means nothing for logits around zero.
    """
    if kind == "linear":
        return values[:, None] * values
    apart = (values[:, None] - values).abs()
    differing = apart[apart > 0]
    width = differing.median() if len(differing) else apart.new_ones(())
    return torch.exp(-(apart / width).square() / 2)


def dependence(coalitions: Tensor, values: Tensor, kind: OutputKernel) -> Tensor:
    """The Hilbert-Schmidt independence criterion of every segment and the answer, (n,) from (M, n) and (M,).

    The kernel of a segment says whether two coalitions agree on it, so that the criterion is a quadratic form of its
    centred column; the usual estimate, divided by M².
    """
    centred = coalitions.double() - coalitions.double().mean(0)
    alike = output_kernel(values.double(), kind)
    return 2 * (centred * (alike @ centred)).sum(0).clamp(min=0) / len(values) ** 2


@method("hsic")
@dataclass(frozen=True)
class HSIC(Coalitional):
    """How much the answer depends on whether a segment is visible, by a kernel measure of dependence (HSIC).

    Few coalitions serve any number of segments. It sees a segment that moves the answer by itself, either way, and not
    one that matters only together with others, as in an exclusive or: maps are magnitudes.

    Paper: Novello et al. 2022, "Making Sense of Dependence: Efficient Black-box Explanations Using Dependence Measure"
    """

    random: ClassVar[bool] = True
    signed: ClassVar[bool] = False

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(segmenter=Grid(8)))
    samples: int = 500
    kernel: OutputKernel = "rbf"

    def __post_init__(self) -> None:
        check_count("samples", self.samples, least=2)

    def plan(self, n: int, generator: Generator) -> Plan:
        seed = int(torch.randint(2**31, (1,), generator=generator))
        coalitions = SobolEngine(n, scramble=True, seed=seed).draw(self.samples) >= 0.5

        def conclude(values: Tensor) -> Estimate:
            found = dependence(coalitions, values, self.kernel)
            return Estimate(found, torch.full_like(found, torch.nan))

        return Plan(coalitions, conclude)

    def evaluations(self, n: int) -> int:
        return self.samples
