"""Robustness: how far maps move when pictures hardly do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from heatproof.errors import BadInput
from heatproof.metrics.continuity import Continuity
from heatproof.metrics.local_lipschitz import LocalLipschitz
from heatproof.metrics.max_sensitivity import AvgSensitivity, MaxSensitivity
from heatproof.metrics.relative_stability import (
    RelativeInputStability,
    RelativeOutputStability,
    RelativeRepresentationStability,
)
from heatproof.metrics.single_deletion import SingleDeletion
from heatproof.protocols._support.blind_controls import with_controls
from heatproof.protocols._support.given import Datasets, Methods, Models
from heatproof.protocols._support.own_pictures import check_model_named
from heatproof.protocols.sanity import contestants
from heatproof.registry import protocol
from heatproof.results.protocol_notes import ProtocolNotes
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import Pairs
from heatproof.types import Metric

Preset = Literal["quick", "paper"]


@protocol
@dataclass(frozen=True)
class Robustness:
    """How far maps move when pictures get a little noise or are shifted, and how far the answer moves meanwhile.

    Average and max sensitivity, the local Lipschitz estimate and the relative stabilities share their noisy copies. A
    map that ignores the picture is perfectly robust, so the blind controls stand beside the methods, whichever are
    named, and single deletion, a faithfulness score: robust and unfaithful is no virtue. `paper` draws 200
    copies with noise of ±0.2, as in published tables.

    Paper: Yeh et al. 2019, "On the (In)fidelity and Sensitivity of Explanations"; Agarwal et al. 2022, "Rethinking
    Stability for Attribution-based Explanations"
    """

    preset: Preset = "quick"
    draws: int | None = None  # noisy copies of each picture; the preset's

    order: ClassVar[int] = 6
    paper: ClassVar[Pairs] = (("preset", "paper"),)
    brief: ClassVar[Pairs] = (("draws", 4),)

    def __post_init__(self) -> None:
        if self.draws is not None and self.draws < 1:
            raise BadInput(f"draws must be at least 1, or None for the preset's, got {self.draws}")

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        """One study of all measures."""
        check_model_named(models, datasets)
        radius, usual = (0.02, 16) if self.preset == "quick" else (0.2, 200)
        draws = self.draws or usual
        least = min(draws, RelativeInputStability.least)
        main = AvgSensitivity(radius, draws)
        measures: list[Metric] = [
            main,
            MaxSensitivity(radius, draws),
            LocalLipschitz(radius, draws),
            RelativeInputStability(radius, draws, least=least),
            RelativeOutputStability(radius, draws, least=least),
            RelativeRepresentationStability(radius, draws, least=least),
            Continuity(shifts=min(Continuity.shifts, max(1, draws // 2))),
            SingleDeletion(),
        ]
        return [
            Study(
                models=models or ["embedded:object"],
                datasets=datasets or ["two_factor"],
                methods=with_controls(methods or contestants()),
                metrics=measures,
                protocol="robustness",
                limit=32 if self.preset == "quick" else 200,
                notes=ProtocolNotes((recipe.label(main), recipe.label(measures[-1])), self.preset).plain(),
            )
        ]
