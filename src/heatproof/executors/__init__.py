"""Executors: do the parts of a run and yield what the work finds, as soon as it comes.

Work runs in workers and writes nothing; whoever called `spread`, the driver, alone writes results.

`local`, the default, is a pool of forked processes. A package adds another by an entry point in the group
`heatproof.executors` that names an object with the two functions of `Executor`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

import torch

from heatproof.errors import UnknownName

Part = TypeVar("Part")
Found = TypeVar("Found")
Workers: TypeAlias = int | Literal["auto"]
OURS = ("local",)


class Executor(Protocol):
    """Decides the number of workers and spreads the parts over them."""

    def how_many(self, requested: Workers, device: torch.device) -> int:
        """The number of workers for a request; raises `BadInput` if it cannot be met."""
        ...

    def spread(self, work: Callable[[Part], Iterator[Found]], parts: Sequence[Part], workers: int) -> Generator[Found]:
        """Yields what `work` yields for every part, as soon as it comes. An error in a part ends the others and is
        raised here. A part whose worker was lost may be done again: some of what it yields then comes twice.
        """
        ...


def executor(name: str) -> Executor:
    """An executor by name, or `UnknownName` with the nearest."""
    found: Any
    if name in OURS:
        found = importlib.import_module(f"heatproof.executors.{name}")
    else:
        others = {point.name: point for point in entry_points(group="heatproof.executors")}
        if name not in others:
            raise UnknownName.among("executor", name, [*OURS, *others])
        found = others[name].load()
    return cast(Executor, found)
