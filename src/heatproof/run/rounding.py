"""What rounding does to a method's maps of this network: the first picture is explained again in double precision.

The difference stands beside the scores of that picture, as the detail `float_noise`. A method whose map moves visibly
is marked numerically unstable in this run, whatever was measured of it elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cached_property

from heatproof.audit.float_noise import in_double, rounding
from heatproof.run.columns import Unit
from heatproof.run.unit import Explained
from heatproof.stability import is_unstable
from heatproof.traits import cost_of, method_traits
from heatproof.types import AnyMethod, Cost, Model

DETAIL = "float_noise"
DEAREST = 256  # passes: means over more than these are stable, and dear in double precision


@dataclasses.dataclass
class Sample:
    """The picture of a shard whose maps are made again in double precision, if there is one."""

    model: Model
    taken: bool

    @cached_property
    def exact(self) -> Model | None:
        """The network in double precision; None where it cannot be copied or converted."""
        try:
            return in_double(self.model)
        except Exception:
            return None

    def of(self, method: AnyMethod, explained: Explained) -> dict[str, float]:
        """How far rounding moves the method's map of the first picture, by its id; empty where it is not measured."""
        attribution = explained.attribution
        if not self.taken or attribution is None or not _worth_it(method) or self.exact is None:
            return {}
        try:
            return {attribution.batch.ids[0]: rounding(self.exact, attribution, 0)}
        except Exception:  # a method for float32 only, or a device without double precision
            return {}


def _worth_it(method: AnyMethod) -> bool:
    """Not controls, nor those that are known to be unstable, nor means over very many passes."""
    price = cost_of(method)
    dear = isinstance(price, Cost) and sum(price) > DEAREST
    return not (dear or method_traits(method).control or is_unstable(method))


def beside(unit: Unit, noise: Mapping[str, float]) -> Unit:
    """The unit with these differences, by picture, beside the scores."""
    if not noise:
        return unit
    return dataclasses.replace(unit, details={**unit.details, DETAIL: [noise.get(image) for image in unit.images]})


def measured(units: Iterable[tuple[Mapping[str, str], Unit]]) -> dict[str, float]:
    """The largest difference of each method that was measured, from the units of a run."""
    found: dict[str, float] = {}
    for place, unit in units:
        for value in unit.details.get(DETAIL, ()):
            if value is not None:
                found[place["method"]] = max(value, found.get(place["method"], 0.0))
    return found
