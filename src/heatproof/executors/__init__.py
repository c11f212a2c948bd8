"""Where the work runs: an executor does the parts of a run and yields a label for every unit that is done.

`local`, the default, is a pool of forked processes. A package brings another one by an entry point in the group
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
Workers: TypeAlias = int | Literal["auto"]
OURS = ("local",)


class Executor(Protocol):
    """How many workers there are, and the parts spread over them."""

    def how_many(self, wanted: Workers, device: torch.device) -> int:
        """The number of workers for a request; `BadInput` for one that cannot be met."""
        ...

    def spread(self, work: Callable[[Part], Iterator[str]], parts: Sequence[Part], workers: int) -> Generator[str]:
        """What `work` yields for every part, as soon as it comes. An error in a part ends the others and is raised
        here; what they finished stays done.
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
