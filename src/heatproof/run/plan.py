"""The plan of a run: its settings with their sizes, passes through the networks, and the protocols left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import cost_of, method_traits
from heatproof.types import Price

SHOWN = 6  # components without a declared cost, by name


@dataclass(frozen=True)
class Setting:
    """One study on one data set and model: its size, and passes of one picture through the network."""

    dataset: str
    model: str
    methods: int
    metrics: int
    pictures: int
    forward: float
    backward: float
    unpriced: tuple[str, ...]  # methods and metrics that declare no cost
    protocol: str = ""

    @property
    def scores(self) -> int:
        return self.methods * self.metrics * self.pictures


def settings(study: Study) -> Iterator[Setting]:
    """One setting for each data set and model of a study."""
    priced, unpriced = _passes(study)
    for dataset in study.datasets:
        for model in study.models:
            yield Setting(
                recipe.label(dataset),
                model.name,  # type: ignore[union-attr]
                len(study.methods),
                len(study.metrics),
                len(study.places(dataset)),
                *priced,
                unpriced,
                study.protocol,
            )


def _passes(study: Study) -> tuple[tuple[float, float], tuple[str, ...]]:
    """Forward and backward passes of one picture, for all methods and metrics, and which declare no cost."""
    costs = {recipe.label(method): cost_of(method) for method in study.methods}
    prices = {recipe.label(metric): cost_of(metric) for metric in study.metrics}
    unpriced = tuple(name for name, cost in {**costs, **prices}.items() if cost is None)
    known = [cost for cost in costs.values() if cost is not None]
    forward, backward = sum(cost.forward for cost in known), sum(cost.backward for cost in known)
    shared = 0.0
    again = 1.0
    for price in prices.values():
        if isinstance(price, Price):
            shared += price.shared + price.forward * len(costs)
            again += price.explanations
    return (forward * again + shared, backward * again), unpriced


def left_out(studies: Sequence[Study]) -> dict[str, str]:
    """Protocols that were requested together with these and do not apply, each with what it would need."""
    return {name: str(reason) for one in studies for name, reason in one.notes.get("left_out", {}).items()}


def in_words(studies: Sequence[Study]) -> Iterator[str]:
    """The plan as lines for the terminal: one per protocol, data set and model, then the protocols left out."""
    every = [one for study in studies for one in settings(study)]
    yield from _line_up(studies)
    for (protocol, model, dataset), alike in groupby(every, lambda one: (one.protocol, one.model, one.dataset)):
        some = list(alike)
        methods, pictures = max(one.methods for one in some), max(one.pictures for one in some)
        metrics, scores = sum(one.metrics for one in some), sum(one.scores for one in some)
        forward, backward = (sum(getattr(one, way) * one.pictures for one in some) for way in ("forward", "backward"))
        yield (
            f"{protocol + ': ' if protocol else ''}{model} on {dataset}: {methods} method{_s(methods)} × "
            f"{metrics} metric{_s(metrics)} × {pictures} picture{_s(pictures)} = {scores:,} scores; "
            f"{forward:,.0f} forward and {backward:,.0f} backward passes"
        )
    if unpriced := dict.fromkeys(name for one in every for name in one.unpriced):
        more = f" and {len(unpriced) - SHOWN} more" if len(unpriced) > SHOWN else ""
        yield f"Not in these passes, since they declare no cost: {', '.join(list(unpriced)[:SHOWN])}{more}."
    for name, reason in left_out(studies).items():
        yield f"Left out: {name} {reason}" if reason.startswith("needs ") else f"Left out: {name}: {reason}"


def _line_up(studies: Sequence[Study]) -> Iterator[str]:
    """The methods, where several protocols judge the same ones."""
    if len({one.protocol for one in studies if one.protocol}) < 2:
        return
    each = [[recipe.label(m) for m in one.methods if not method_traits(m).control] for one in studies]
    if all(names == each[0] for names in each):
        yield f"{len(each[0])} method{_s(len(each[0]))}, the same in every protocol: {', '.join(each[0])}"


def _s(count: int) -> str:
    """The ending of a plural."""
    return "" if count == 1 else "s"
