"""The local executor: parts of the work in parallel, in forked processes of one thread each."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import torch

from heatproof import engine
from heatproof.errors import BadInput
from heatproof.executors import Found, Part, Workers
from heatproof.executors._support.portable import Elsewhere, WorkerLost, portable
from heatproof.spec.study import Study

PR_SET_PDEATHSIG = 1  # <sys/prctl.h>: the signal a process gets when the one that forked it ends


def how_many(requested: Workers, device: torch.device) -> int:
    """The number of processes. `auto`: one per core if networks are so small that they run on one thread, else one."""
    possible = device.type == "cpu" and sys.platform.startswith("linux")
    if requested == "auto":
        return engine.idle_cores() if possible else 1
    if isinstance(requested, bool) or not isinstance(requested, int) or requested < 1:
        raise BadInput(f"workers must be a number of processes, at least 1, or 'auto', got {requested!r}")
    if requested > 1 and not possible:
        where = f"device {device.type}" if device.type != "cpu" else f"{sys.platform}, where processes cannot be forked"
        raise BadInput(
            f"more than one worker needs Linux and the CPU, got {requested} on {where}: leave workers out, or run it "
            "with --on ray, where each worker has its own GPU or a share of one"
        )
    return requested


def check(study: Study) -> None:
    """Forks share the memory of this process: everything travels."""


def close() -> None:
    """Processes end with their parts."""


def spread(work: Callable[[Part], Iterator[Found]], parts: Sequence[Part], workers: int) -> Generator[Found]:
    """Yields what `work` yields for every part, as soon as it comes; `workers` parts run at a time.

    The processes are forks: they share the models, pictures and user code of this process, even what cannot be pickled.
    An error in one of them is raised here and ends the others; what they finished is kept.
    """
    if min(workers, len(parts)) < 2:
        for part in parts:
            yield from work(part)
        return
    fork = multiprocessing.get_context("fork")
    turn = fork.Value("i", 0)  # index of the next part to take
    workers_by_pipe: dict[Connection, Any] = {}
    try:
        with _ctrl_c_waiting():
            for _ in range(min(workers, len(parts))):
                reader, writer = fork.Pipe(duplex=False)
                process = fork.Process(target=_take_turns, args=(work, parts, turn, writer, os.getpid()), daemon=True)
                process.start()
                writer.close()  # so that the end of the worker closes the pipe
                workers_by_pipe[reader] = process
        waiting = dict(workers_by_pipe)
        while waiting:
            for ready in wait(list(waiting)):
                yield from _received(cast(Connection, ready), waiting)
    finally:
        for process in workers_by_pipe.values():
            process.terminate()
        for reader, process in workers_by_pipe.items():
            process.join()
            reader.close()


@contextmanager
def _ctrl_c_waiting() -> Iterator[None]:
    """Delays Ctrl-C: in the middle of a fork it would be lost, or leave a worker without a parent that ends it."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(signal.SIGINT, None)


def _received(reader: Connection, waiting: dict[Connection, Any]) -> Iterator[Any]:
    """The next message of a worker: what it found, if that is what it is."""
    try:
        kind, what = reader.recv()
    except EOFError:
        process = waiting.pop(reader)
        process.join()
        raise WorkerLost(_how_it_ended(process.exitcode)) from None
    if kind == "ended":
        waiting.pop(reader)
    elif kind == "failed":
        error, trace = what
        raise error from Elsewhere(f"in a worker:\n{trace}")
    elif kind == "warned":
        warnings.warn(what, stacklevel=3)
    else:
        yield what


def _how_it_ended(code: int) -> str:
    how = f"was stopped by signal {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    kept = "everything finished is kept, and the same command goes on from there"
    if code == -signal.SIGKILL:
        return f"a worker {how}, usually for want of memory: {kept}; fewer workers need less"
    return f"a worker {how} in the middle of its work: {kept}"


def _take_turns(
    work: Callable[[Part], Iterator[Found]], parts: Sequence[Part], turn: Any, writer: Connection, parent: int
) -> None:
    """A worker's loop: takes one part after the other until none is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # and if the parent ends in any way, so do the workers
    if os.getppid() != parent:
        os._exit(1)
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # may have children
    # A progress bar may have replaced them, with a lock that another thread held during the fork.
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # type: ignore[misc]
    engine.be_worker()  # also because threads of the libraries do not survive a fork
    warnings.showwarning = lambda message, *_, **__: writer.send(("warned", portable(message, UserWarning)))
    try:
        while True:
            with turn.get_lock():
                mine, turn.value = turn.value, turn.value + 1
            if mine >= len(parts):
                break
            for found in work(parts[mine]):
                writer.send(("found", found))
        writer.send(("ended", None))
    except Exception as error:
        writer.send(("failed", (portable(error, RuntimeError), traceback.format_exc())))
    writer.close()
