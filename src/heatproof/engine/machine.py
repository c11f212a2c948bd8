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

import cv2
import torch

from heatproof.errors import BadInput
from heatproof.types import Model

Part = TypeVar("Part")
Answer = TypeVar("Answer")

DEVICES = ("auto", "cpu", "cuda", "mps")
SMALL = 96  # pixels per side; networks for smaller pictures finish a layer before a second thread wakes up
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from <malloc.h>
KEPT = 2**29  # bytes that may stay idle; more is returned
LARGEST = 2**25  # bytes; larger blocks are mapped and unmapped each time, and glibc allows no higher threshold
USUAL = 2**26  # the threshold that glibc itself reaches once a process has freed large blocks

_worker = False  # whether this process is one of several that share the machine
_keeping = 0  # number of active `kept_memory` contexts, counted because malloc's settings belong to the process


def pick(device: str = "auto") -> torch.device:
    """A torch device by name, such as `cuda:1`; `auto` is the fastest one available."""
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


@functools.cache
def place(device: torch.device) -> str:
    """The machine's part of a choice's key."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "cpu":
        return f"cpu {torch.backends.cpu.get_cpu_capability()} of {os.cpu_count()}"
    return device.type


def synchronise(device: torch.device) -> None:
    """Waits for the device's pending work, so that a clock read afterwards is right."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out: the one failure that a smaller batch can fix."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("out of memory" in text or "DefaultCPUAllocator" in text)


@contextmanager
def threads_for(models: Iterable[Model], one: bool = False) -> Iterator[None]:
    """A context with one thread if all networks are small (unless OMP_NUM_THREADS is set) or `one` is set, and with
    memory kept from pass to pass. On small pictures two threads mostly wait for each other.
    """
    small = all(model.view is not None and max(model.view.sides) <= SMALL for model in models)
    before = torch.get_num_threads()
    if one or (small and "OMP_NUM_THREADS" not in os.environ):
        torch.set_num_threads(1)
    try:
        with kept_memory():
            yield
    finally:
        torch.set_num_threads(before)


def side_by_side(work: Callable[[Part], Answer], parts: Sequence[Part]) -> list[Answer]:
    """`work` applied to every part, one thread each where cores would idle; results in the order of the parts.

    Each thread has its own grad and inference mode, so `work` must set what it needs.
    """
    workers = min(len(parts), idle_cores())
    return list((_pool(workers, os.getpid()).map if workers > 1 else map)(work, parts))


def cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_cores() -> int:
    """The number of cores for threads outside of torch: all, or one in a worker, since workers share the machine."""
    return cores() if multiprocessing.parent_process() is None and not _worker else 1


def be_worker(threads: int = 1) -> None:
    """Keeps this process, from now on a worker, to so many threads: the other cores have workers of their own."""
    global _worker
    _worker = True
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)


def idle_cores() -> int:
    """The number of cores for threads while torch computes: all if `threads_for` set one thread, else one."""
    alone = torch.get_num_threads() == 1 and "OMP_NUM_THREADS" not in os.environ
    return cores() if alone else 1


@functools.cache
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    """A pool of threads that stay, since new ones would set up their libraries anew. `process` gives a fork its own."""
    return ThreadPoolExecutor(workers)


@contextmanager
def kept_memory() -> Iterator[None]:
    """A context in which freed memory is kept for the next pass; afterwards idle memory is returned to the system.

    Otherwise the C library returns freed memory soon, and the next micro-batch gets it back page by page, each filled
    with zeros: on small networks that is a quarter of a forward. It works with glibc and does nothing elsewhere, nor in
    a process that was started with malloc settings of its own.
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
