"""What passes through the network while a method runs: how many rows, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from heatproof.models import engine
from heatproof.models.engine import passes as engine_passes
from heatproof.types import Model


@contextmanager
def counting(network: nn.Module) -> Iterator[dict[str, int]]:
    """Rows through the network, each way, and of them those that were asked for (the rest fills up)."""
    counts = {"forward": 0, "backward": 0, "asked": 0, "portions": 0}
    portions = engine_passes._portions

    def back(slope: Tensor) -> None:
        counts["backward"] += len(slope)

    def hear(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        counts["forward"] += len(output)
        if output.requires_grad:
            output.register_hook(back)  # type: ignore[no-untyped-call]

    def watched(way: engine.Plan, rows: int) -> Iterator[tuple[int, int]]:
        for first, size in portions(way, rows):
            counts["asked"] += min(size, rows - first)
            counts["portions"] += 1
            yield first, size

    hook = network.register_forward_hook(hear)
    engine_passes._portions = watched
    try:
        yield counts
    finally:
        engine_passes._portions = portions
        hook.remove()


@contextmanager
def inside(model: Model) -> Iterator[list[float]]:
    """Processor seconds spent in passes, forward and back, while a method runs."""
    spent: list[float] = []
    depth = [0]

    def watched(work: Callable[..., Any]) -> Callable[..., Any]:
        def timed_work(*arguments: Any, **named: Any) -> Any:
            begin = time.process_time()
            depth[0] += 1
            try:
                return work(*arguments, **named)
            finally:
                depth[0] -= 1
                if not depth[0]:
                    spent.append(time.process_time() - begin)

        return timed_work

    plan, grad, network = engine_passes.plan, torch.autograd.grad, type(model.network)
    calls, normalised = network.__call__, Model.normalised
    Model.normalised = watched(normalised)  # type: ignore[method-assign]
    engine_passes.plan = lambda *question: _rerun(plan(*question), watched)
    torch.autograd.grad = watched(grad)
    network.__call__ = watched(calls)  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        engine_passes.plan, torch.autograd.grad = plan, grad
        Model.normalised = normalised  # type: ignore[method-assign]
        network.__call__ = calls  # type: ignore[method-assign]


def _rerun(plan: engine.Plan, watched: Callable[[Any], Any]) -> engine.Plan:
    return replace(plan, run=watched(plan.run))
