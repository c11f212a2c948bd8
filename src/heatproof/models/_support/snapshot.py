"""Snapshots of a model, to see what a component changes in it: weights, modes, gradients, hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from heatproof.engine.weight_state import HOOKS
from heatproof.types import Model

Snapshot = dict[str, Any]


def snapshot(model: Model) -> Snapshot:
    network = model.network
    return {
        "tensors": {name: value.clone() for name, value in network.state_dict().items()},
        "training": [part.training for part in network.modules()],
        "requires_grad": [p.requires_grad for p in network.parameters()],
        "gradients": [None if p.grad is None else p.grad.clone() for p in network.parameters()],
        "hooks": [[len(vars(part)[name]) for name in HOOKS] for part in network.modules()],
    }


def changed(model: Model, before: Snapshot) -> list[str]:
    """What is no longer as it was."""
    after = snapshot(model)
    same: dict[str, Callable[[Any, Any], bool]] = {
        "tensors": lambda a, b: all(torch.equal(a[name], b[name]) for name in a),
        "gradients": _equal_or_none,
    }
    return [name for name in before if not same.get(name, lambda a, b: bool(a == b))(before[name], after[name])]


def _equal_or_none(first: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> bool:
    pairs = list(zip(first, other, strict=True))
    return all((a is None and b is None) or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)
