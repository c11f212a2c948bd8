"""Back-ends that run a network: itself, a copy in another memory layout, with batch norms folded, by ONNX Runtime."""

from __future__ import annotations

from torch import Tensor

from heatproof.engine.backends import onnx
from heatproof.engine.backends.eager import Runner, copied, in_layout, untouched
from heatproof.engine.backends.folded import folded
from heatproof.engine.choice import Choice
from heatproof.types import Images, Model


def runner(model: Model, choice: Choice, example: Images, fresh: bool = False) -> Runner:
    """The runner of this choice for images like the example; raises whatever copying or exporting raises.

    `fresh` exports anew even where the cache holds this network.
    """
    if choice.backend == "untouched":
        return untouched(model.network)
    shorter = None if choice.backend == "eager" else folded(model.network)
    if choice.backend == "folded" and shorter is None:
        raise ValueError("there is nothing to fold")
    network = copied(model.network) if shorter is None else shorter
    if choice.backend == "onnx":
        return onnx.runner(network, normalised(model, example), fresh)
    return in_layout(network, choice.layout)


def normalised(model: Model, images: Images) -> Tensor:
    """Images in [0, 1] as the network takes them: normalised, on its device, in its precision."""
    return model.normalised(images.to(model.device)).to(model.dtype)
