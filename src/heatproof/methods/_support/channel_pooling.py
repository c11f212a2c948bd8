"""Channel pooling: the shared step from channel-wise attributions to a map."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from torch import Tensor

from heatproof.errors import BadInput
from heatproof.types import Maps

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
