"""DeepLIFT SHAP: DeepLIFT averaged over baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from heatproof.methods._support.baselines import Baseline, revision_of
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count
from heatproof.methods.deep_lift import DeepLift
from heatproof.registry import method
from heatproof.types import Batch, Cost, Model


@method
@dataclass(frozen=True)
class DeepLiftShap(ChannelPooled):
    """DeepLIFT (the Rescale rule) averaged over many baselines: an estimate of SHAP values.

    Adds up to the answer minus its mean over the baselines; networks that the rule does not cover are refused, as by
    deep_lift. `background` as in expected_gradients: with a data set of training images this is the paper's method.

    Paper: Lundberg & Lee 2017, "A Unified Approach to Interpreting Model Predictions"
    """

    random: ClassVar[bool] = True

    background: Baseline = "gaussian"
    draws: int = 20
    pooling: Pooling = "sum"

    revision = revision_of("background")

    def __post_init__(self) -> None:
        check_count("draws", self.draws)

    @property
    def _parts(self) -> DeepLift:
        return DeepLift(self.background, self.draws, self.pooling)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        return self._parts.channels(model, batch)

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """The sum that maps add up to: the answer's rise over the mean answer to the baselines."""
        return self._parts.total(model, batch)

    def cost(self) -> Cost:
        return self._parts.cost()
