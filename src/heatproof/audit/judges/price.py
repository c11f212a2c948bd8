"""What a metric costs, counted: passes of one picture through the network, and maps computed again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.attribute import attribute
from heatproof.errors import HeatproofError
from heatproof.spec import recipe
from heatproof.stats.judges.evidence import Passes
from heatproof.traits import cost_of
from heatproof.types import Attribution, Batch, Maps, Method, Metric, Model, keyed_seed


@dataclass(eq=False)
class Counter:
    """Rows that went through a network, twice those that slopes were taken of."""

    passes: float = 0.0

    def __call__(self, module: nn.Module, inputs: tuple[Any, ...], /) -> None:
        rows = inputs[0]
        if isinstance(rows, Tensor):
            slopes = torch.is_grad_enabled() and rows.requires_grad
            self.passes += len(rows) * (2 if slopes else 1)


@contextmanager
def counted(network: nn.Module) -> Iterator[Counter]:
    """Count what goes through the network itself; copies made for speed are not used meanwhile."""
    counter = Counter()
    handle = network.register_forward_pre_hook(counter)
    try:
        with engine.use(engine.Engine(measure=False)):
            yield counter
    finally:
        handle.remove()


@dataclass(eq=False)
class CountedMethod:
    """A method that counts its calls."""

    method: Method
    maps: int = field(default=0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        self.maps += len(batch)
        return self.method(model, batch)


def passes_of(metric: Metric, model: Model, single: Batch, first: Method, second: Method) -> Passes:
    """Judge two maps of one picture, and count: what the second costs every map does, the rest is shared.

    The picture is made a little darker, by another amount for each metric: answers that other metrics have had computed
    are remembered, and would not be counted.
    """
    shade = 1 - keyed_seed(0, "price", recipe.label(metric)) % 10_000 / 1e6
    single = single.showing(single.images * shade)
    costs, again = [], 0
    with counted(model.network) as counter:
        for method in (first, second):
            counting = CountedMethod(method)
            attribution: Attribution = attribute(model, single, counting)
            before, counting.maps = counter.passes, 0
            try:
                metric(attribution)
            except HeatproofError:
                return _declared(metric)
            costs.append(counter.passes - before)
            again = counting.maps
    return Passes(costs[1], max(0.0, costs[0] - costs[1]), float(again))


def _declared(metric: object) -> Passes:
    """The price that a metric declares, where these two methods are none that it applies to; NaN without one."""
    nan = float("nan")
    declared = cost_of(metric)
    return Passes(declared.forward, declared.shared, declared.explanations) if declared else Passes(nan, nan, nan)
