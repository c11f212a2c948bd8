"""The line-up: the methods that a run of all protocols judges under each of them, in one configuration each."""

from __future__ import annotations

from heatproof.methods.cam import GradCam
from heatproof.methods.deep_lift import DeepLift
from heatproof.methods.guided_backprop import GuidedBackprop
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.methods.lrp import LRP
from heatproof.methods.pred_diff import PredDiff
from heatproof.methods.saliency import Saliency
from heatproof.methods.smoothgrad import Smoothed
from heatproof.types import AnyMethod


def line_up() -> list[AnyMethod]:
    """One or two of every family, none of more than 32 passes: tests of robustness explain a picture dozens of times.

    What a metric needs of a map (magnitudes, heat, a threshold) it makes of it itself.
    """
    return [
        Saliency(),
        InputXGradient(),
        Smoothed(draws=10),
        IntegratedGradients(steps=16),
        GuidedBackprop(),
        DeepLift(),
        LRP(),
        GradCam(),
        PredDiff(),
    ]
