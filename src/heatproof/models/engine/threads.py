"""How many threads? On small pictures two threads mostly wait for each other: one was five times faster.

What falls into independent parts may then use the other cores, a part each.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from heatproof.models.engine.memory import kept_memory
from heatproof.models.engine.setting import current
from heatproof.types import Model

Part = TypeVar("Part")
Answer = TypeVar("Answer")

SMALL = 96  # pixels a side; networks for smaller pictures finish a layer before a second thread has woken up


@contextmanager
def threads_for(models: Iterable[Model]) -> Iterator[None]:
    """One thread while only small networks are asked, unless OMP_NUM_THREADS says otherwise, then as many as before;
    and memory kept from pass to pass. The reference engine has one thread always: several add up in another order.
    """
    small = all(model.view is not None and model.view.size <= SMALL for model in models)
    before = torch.get_num_threads()
    if (small and "OMP_NUM_THREADS" not in os.environ) or current().reference:
        torch.set_num_threads(1)
    try:
        with kept_memory():
            yield
    finally:
        torch.set_num_threads(before)


def side_by_side(work: Callable[[Part], Answer], parts: Sequence[Part]) -> list[Answer]:
    """`work` done on every part, one thread each where cores would idle; the answers come in the order of the parts.

    Each thread has its own grad and inference mode, so `work` must set what it needs.
    """
    workers = min(len(parts), idle_cores())
    return list((_pool(workers, os.getpid()).map if workers > 1 else map)(work, parts))


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_cores() -> int:
    """Cores for threads outside torch: all of them, and one in a worker, whose fellows have the others."""
    return cores() if multiprocessing.parent_process() is None else 1


def idle_cores() -> int:
    """Cores that nobody uses while torch computes: all where one thread was lent, and else one, its own."""
    alone = torch.get_num_threads() == 1 and "OMP_NUM_THREADS" not in os.environ
    return cores() if alone else 1


@functools.cache
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones for every step would each set up their libraries anew. A fork has none of them,
    hence the number of the process.
    """
    return ThreadPoolExecutor(workers)
