"""GradientSHAP: expected gradients with noise on the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from heatproof.methods._support.baselines import Baseline, revision_of
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_not_negative
from heatproof.methods.expected_gradients import Dice, expected
from heatproof.registry import method
from heatproof.types import Batch, Cost, Model, Readout


@method
@dataclass(frozen=True)
class GradientShap(ChannelPooled):
    """Expected gradients with noise on the picture and unstratified points: an estimate of SHAP values.

    `background` as in expected_gradients; `noise` is the standard deviation in pixel units.

    Paper: Lundberg & Lee 2017, "A Unified Approach to Interpreting Model Predictions"
    """

    random: ClassVar[bool] = True

    background: Baseline = "gaussian"
    draws: int = 50
    noise: float = 0.02
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    revision = revision_of("background")

    def __post_init__(self) -> None:
        check_count("draws", self.draws)
        check_not_negative("noise", self.noise)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        dice = Dice(batch, self.draws, stratified=False, noise=self.noise)
        return expected(model, batch, self.background, dice, self.readout)

    def cost(self) -> Cost:
        return Cost(self.draws, self.draws)
