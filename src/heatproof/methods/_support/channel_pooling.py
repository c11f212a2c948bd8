"""Channel pooling: the shared step from channel-wise attributions to a map."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, TypeAlias, get_args

from torch import Tensor

from heatproof.errors import BadInput
from heatproof.types import Batch, Maps, Model

Pooling: TypeAlias = Literal["sum", "abs_sum", "max_abs", "positive_sum"]


def pool(per_channel: Tensor, rule: Pooling) -> Maps:
    """(B, C, H, W) to (B, H, W).

    `sum` keeps completeness and sign; `abs_sum` and `max_abs` are magnitudes; `positive_sum` drops the
    evidence against the target channel by channel before adding up (as the BAM protocol does).
    """
    match rule:
        case "sum":
            return per_channel.sum(1)
        case "abs_sum":
            return per_channel.abs().sum(1)
        case "max_abs":
            return per_channel.abs().amax(1)
        case "positive_sum":
            return per_channel.clamp(min=0).sum(1)
    raise BadInput(f"pooling must be one of {', '.join(get_args(Pooling))}, got {rule!r}")


def keeps_sign(rule: Pooling) -> bool:
    """Whether a pooled map can be negative."""
    return rule == "sum"


class ChannelPooled:
    """The shell of methods that attribute to the channels of each pixel and pool them to a map."""

    pooling: Pooling

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling)

    @abstractmethod
    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        """The attributions before pooling: (B, C, H, W)."""

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)
