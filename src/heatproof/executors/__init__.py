"""Executors: do the parts of a run and yield what the work finds, as soon as it comes.

Work runs in workers and writes nothing; whoever called `spread`, the driver, alone writes results.

`local`, the default, is a pool of forked processes; `ray` spreads the parts over the machines of a Ray cluster. A
package adds another by an entry point in the group `heatproof.executors` that names an object with the functions of
`Executor`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

import torch

from heatproof.errors import UnknownName
from heatproof.spec.study import Study

Part = TypeVar("Part")
Found = TypeVar("Found")
Workers: TypeAlias = int | Literal["auto"]
OURS = ("local", "ray")


class Executor(Protocol):
    """Decides the number of workers and spreads the parts over them."""

    def how_many(self, requested: Workers, device: torch.device) -> int:
        """The number of workers for a request; raises `BadInput` if it cannot be met."""
        ...

    def check(self, study: Study) -> None:
        """Raises `BadInput`, by name, for what cannot travel to a worker."""
        ...

    def spread(self, work: Callable[[Part], Iterator[Found]], parts: Sequence[Part], workers: int) -> Generator[Found]:
        """Yields what `work` yields for every part, as soon as it comes. An error in a part ends the others and is
        raised here. A part whose worker was lost may be done again: some of what it yields then comes twice.
        """
        ...

    def close(self) -> None:
        """Ends workers that wait for more parts."""
        ...


def executor(name: str) -> Executor:
    """An executor by name, or `UnknownName` with the nearest."""
    found: Any
    if name == "ray":
        from heatproof.executors.ray import Ray

        found = Ray()
    elif name == "local":
        found = importlib.import_module("heatproof.executors.local")
    else:
        others = {point.name: point for point in entry_points(group="heatproof.executors")}
        if name not in others:
            raise UnknownName.among("executor", name, [*OURS, *others])
        found = others[name].load()
    return cast(Executor, found)
