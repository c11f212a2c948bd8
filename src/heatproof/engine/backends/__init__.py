"""Ways to run a network: as it is, copied into another memory layout, with batch norms folded, by ONNX Runtime."""

from __future__ import annotations

from torch import Tensor, nn

from heatproof.engine.backends import onnx
from heatproof.engine.backends.eager import Runner, copied, in_layout, untouched
from heatproof.engine.backends.folded import folded
from heatproof.engine.choice import Choice


def runner(network: nn.Module, choice: Choice, example: Tensor, fresh: bool = False) -> Runner:
    """Passes of normalised pictures like the example by this choice; raises whatever copying or exporting raises.

    `fresh` exports anew even where the cache holds this network.
    """
    if choice.backend == "untouched":
        return untouched(network)
    if choice.backend == "eager":
        return in_layout(copied(network), choice.layout)
    shorter = folded(network)
    if choice.backend == "onnx":
        return onnx.runner(copied(network) if shorter is None else shorter, example, fresh)
    if shorter is None:
        raise ValueError("there is nothing to fold")
    return in_layout(shorter, choice.layout)
