"""Sanity checks: does a map change when the model forgets, when another class is explained, and does it add up?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from heatproof.errors import BadInput
from heatproof.methods.cam import GradCam
from heatproof.methods.deep_lift import DeepLift
from heatproof.methods.guided_backprop import GuidedBackprop
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.methods.lrp import LRP
from heatproof.methods.saliency import Saliency
from heatproof.methods.smoothgrad import Smoothed
from heatproof.metrics.completeness_error import CompletenessError
from heatproof.metrics.mprt import MPRT, EfficientMPRT, SmoothMPRT
from heatproof.metrics.random_logit import RandomLogit
from heatproof.metrics.sensitivity_axiom import SensitivityAxiom
from heatproof.protocols._support.blind_controls import with_controls
from heatproof.protocols._support.given import Datasets, Methods, Models
from heatproof.protocols._support.own_pictures import check_model_named
from heatproof.registry import protocol
from heatproof.results.protocol_notes import ProtocolNotes
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import Pairs
from heatproof.types import AnyMethod, Metric

Preset = Literal["quick", "paper"]


@protocol
@dataclass(frozen=True)
class Sanity:
    """Whether maps depend on what they are to explain: on the model's weights, on the class, on visible pixels.

    Parameter randomisation from the answer down and from the picture up, its efficient form, the random-logit test,
    completeness where a method promises it, and pixels that the model cannot see; beside the blind controls, which must
    fail, whichever methods are named. `paper` randomises every layer, in 20 stages at most, and adds the smooth form
    with 50 noisy copies. Passing says that a map is not blind, and not that it is right.

    Paper: Adebayo et al. 2018, "Sanity Checks for Saliency Maps"; Hedström et al. 2023, "Sanity Checks Revisited: An
    Exploration to Repair the Model Parameter Randomisation Test"
    """

    preset: Preset = "quick"
    stages: int | None = None  # of parameter randomisation, at most; the preset's

    order: ClassVar[int] = 5
    paper: ClassVar[Pairs] = (("preset", "paper"),)
    brief: ClassVar[Pairs] = (("stages", 3),)

    def __post_init__(self) -> None:
        if self.stages is not None and self.stages < 1:
            raise BadInput(f"stages must be at least 1, or None for the preset's, got {self.stages}")

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        """One study of all tests."""
        check_model_named(models, datasets)
        stages = self.stages or (5 if self.preset == "quick" else 20)
        top, bottom = MPRT(stages=stages), MPRT("bottom_up", stages=stages)
        tests: list[Metric] = [top, bottom, EfficientMPRT(), RandomLogit(), SensitivityAxiom(), CompletenessError()]
        if self.preset == "paper":
            tests.append(SmoothMPRT(stages=stages))
        return [
            Study(
                models=models or ["embedded:object"],
                datasets=datasets or ["two_factor"],
                methods=with_controls(methods or contestants()),
                metrics=tests,
                protocol="sanity",
                limit=32 if self.preset == "quick" else 200,
                notes=ProtocolNotes(
                    tuple(recipe.label(test) for test in (top, tests[3], tests[4])), self.preset
                ).plain(),
            )
        ]


def contestants() -> list[AnyMethod]:
    """Methods that differ in how much of the model they use."""
    return [
        Saliency(),
        InputXGradient(),
        Smoothed(),
        IntegratedGradients(),
        GuidedBackprop(),
        DeepLift(),
        LRP(),
        GradCam(),
    ]
