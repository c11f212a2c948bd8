"""The machine: devices, threads, cores, and memory kept between passes."""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from heatproof.errors import BadInput
from heatproof.types import Model

Part = TypeVar("Part")
Answer = TypeVar("Answer")

DEVICES = ("auto", "cpu", "cuda", "mps")
SMALL = 96  # pixels a side; networks for smaller pictures finish a layer before a second thread has woken up
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the names of these settings in <malloc.h>
KEPT = 2**29  # bytes that may lie idle; more goes back
LARGEST = 2**25  # bytes; larger blocks come from the system and go back to it each time, glibc allows no more
USUAL = 2**26  # what glibc itself ends at once a process has freed large blocks

_keeping = 0  # how many `kept_memory` are under way; malloc's settings are the process's


def pick(device: str = "auto") -> torch.device:
    """A torch device by name (`cuda:1` included); `auto` is the fastest there is."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind, _, index = device.partition(":")
    if kind not in DEVICES[1:] or (index and not index.isdigit()):
        raise BadInput(f"device must be one of {', '.join(DEVICES)} or like cuda:1, got {device!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise BadInput("device must be available, got 'cuda', and torch sees no CUDA device here: use auto or cpu")
    if kind == "cuda" and index and int(index) >= torch.cuda.device_count():
        raise BadInput(f"device must be available, got {device!r} of {torch.cuda.device_count()} CUDA devices")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise BadInput("device must be available, got 'mps', and torch sees no Apple GPU here: use auto or cpu")
    return torch.device(device)


def synchronise(device: torch.device) -> None:
    """Wait for the work under way, so that a clock read now is true."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def out_of_memory(error: BaseException) -> bool:
    """Whether a pass failed for want of memory: the one failure a smaller batch can mend."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("out of memory" in text or "DefaultCPUAllocator" in text)


@contextmanager
def threads_for(models: Iterable[Model], one: bool = False) -> Iterator[None]:
    """One thread while all networks are small (unless OMP_NUM_THREADS is set) or if `one` is demanded, and memory
    kept from pass to pass. On small pictures two threads mostly wait for each other.
    """
    small = all(model.view is not None and model.view.size <= SMALL for model in models)
    before = torch.get_num_threads()
    if one or (small and "OMP_NUM_THREADS" not in os.environ):
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
    """Cores for threads outside torch: all of them, and one in a worker, as the others have their workers."""
    return cores() if multiprocessing.parent_process() is None else 1


def idle_cores() -> int:
    """Cores that are free while torch computes: all where `threads_for` took one thread, and else one."""
    alone = torch.get_num_threads() == 1 and "OMP_NUM_THREADS" not in os.environ
    return cores() if alone else 1


@functools.cache
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay, as new ones would set up their libraries anew. A fork has none of them, hence `process`."""
    return ThreadPoolExecutor(workers)


@contextmanager
def kept_memory() -> Iterator[None]:
    """While this lasts, freed memory is kept for the next pass; afterwards what lies idle is handed back.

    Otherwise the C library hands freed memory back soon, and the next micro-batch fetches it page by page, each filled
    with zeros: on small networks a quarter of a forward. Works with glibc, does nothing elsewhere, nor in a process
    that was started with such settings.
    """
    global _keeping
    library = _glibc()
    if library is None or _environment_decides():
        yield
        return
    _keeping += 1
    library.mallopt(TRIM_THRESHOLD, KEPT)
    library.mallopt(MMAP_THRESHOLD, LARGEST)
    try:
        yield
    finally:
        _keeping -= 1
        if not _keeping:
            library.mallopt(TRIM_THRESHOLD, USUAL)
            library.malloc_trim(0)


def _environment_decides() -> bool:
    named = any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"))
    return named or "_threshold" in os.environ.get("GLIBC_TUNABLES", "")


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
