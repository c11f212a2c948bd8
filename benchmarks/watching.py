"""What passes through the network while a method runs: how many rows, and for how long."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from heatproof import engine
from heatproof.types import Cost, Model


@dataclass
class Requested:
    """The rows of every micro-batch a method requested, without those that fill it up; and slopes per forward."""

    portions: list[int]
    filled: int = 0
    slopes: int = 0

    def cost(self, images: int) -> Cost:
        """Passes per image."""
        rows = sum(self.portions)
        return Cost(rows / images, self.slopes / self.filled * rows / images)

    def shares(self) -> dict[int, float]:
        """Rows at a time -> the share of all rows that came so many at a time."""
        times, rows = Counter(self.portions), sum(self.portions)
        return {size: size * number / rows for size, number in sorted(times.items())}


@contextmanager
def counting() -> Iterator[Requested]:
    """What passes through the engine, without a hook: a network that is listened to is run as it is."""
    requested = Requested([])
    portions, grad = engine.Plan.portions, torch.autograd.grad

    def watched(plan: engine.Plan, rows: int) -> Iterator[tuple[int, int]]:
        for first, size in portions(plan, rows):
            requested.portions.append(min(size, rows - first))
            requested.filled += size
            yield first, size

    def back(outputs: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
        found = grad(outputs, inputs, *arguments, **named)
        requested.slopes += len(found[0])
        return found

    engine.Plan.portions, torch.autograd.grad = watched, back  # type: ignore[method-assign]
    try:
        yield requested
    finally:
        engine.Plan.portions, torch.autograd.grad = portions, grad  # type: ignore[method-assign]


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

    plan, grad, network = engine.Engine.plan, torch.autograd.grad, type(model.network)
    calls, normalised = network.__call__, Model.normalised
    Model.normalised = watched(normalised)  # type: ignore[method-assign]
    engine.Engine.plan = lambda *question: _rerun(plan(*question), watched)  # type: ignore[method-assign]
    torch.autograd.grad = watched(grad)
    network.__call__ = watched(calls)  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        engine.Engine.plan, torch.autograd.grad = plan, grad  # type: ignore[method-assign]
        Model.normalised = normalised  # type: ignore[method-assign]
        network.__call__ = calls  # type: ignore[method-assign]


def _rerun(plan: engine.Plan, watched: Callable[[Any], Any]) -> engine.Plan:
    return replace(plan, run=watched(plan.run))
