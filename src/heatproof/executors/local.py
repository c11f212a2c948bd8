"""The default executor: a pool of forked processes on this machine, each on one thread."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import cv2
import torch

from heatproof import engine
from heatproof.errors import BadInput, HeatproofError
from heatproof.executors import Part, Workers

PR_SET_PDEATHSIG = 1  # <sys/prctl.h>: the signal a process gets when the one that forked it ends


class WorkerLost(HeatproofError):
    """A process ended before its work did."""


class Elsewhere(Exception):
    """The trace of an error in a worker."""


def how_many(wanted: Workers, device: torch.device) -> int:
    """Number of processes. `auto`: one per core where networks are so small that they run on one thread, else one."""
    possible = device.type == "cpu" and sys.platform.startswith("linux")
    if wanted == "auto":
        return engine.idle_cores() if possible else 1
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise BadInput(f"workers must be a number of processes from 1 on, or 'auto', got {wanted!r}")
    if wanted > 1 and not possible:
        where = f"device {device.type}" if device.type != "cpu" else f"{sys.platform}, where processes cannot be forked"
        raise BadInput(f"more than one worker needs Linux and the CPU, got {wanted} on {where}: leave workers out")
    return wanted


def spread(work: Callable[[Part], Iterator[str]], parts: Sequence[Part], workers: int) -> Generator[str]:
    """The labels that `work` yields for every part, as soon as they come; `workers` parts are done at a time.

    The processes are forks: they have models, pictures and user code as these are now, also what no file could
    hold. An error in one of them is raised here, and ends the others; what they finished stays done.
    """
    if min(workers, len(parts)) < 2:
        for part in parts:
            yield from work(part)
        return
    fork = multiprocessing.get_context("fork")
    turn = fork.Value("i", 0)  # the next part that no worker has taken
    crew: dict[Connection, Any] = {}
    try:
        with _ctrl_c_waiting():
            for _ in range(min(workers, len(parts))):
                receiver, sender = fork.Pipe(duplex=False)
                process = fork.Process(target=_take_turns, args=(work, parts, turn, sender, os.getpid()), daemon=True)
                process.start()
                sender.close()  # so that the pipe ends when the worker does
                crew[receiver] = process
        waiting = dict(crew)
        while waiting:
            for ready in wait(list(waiting)):
                label = _received(cast(Connection, ready), waiting)
                if label is not None:
                    yield label
    finally:
        for process in crew.values():
            process.terminate()
        for receiver, process in crew.items():
            process.join()
            receiver.close()


@contextmanager
def _ctrl_c_waiting() -> Iterator[None]:
    """Delays Ctrl-C: in the middle of a fork it would be lost, or leave a worker that is not listed yet."""
    if threading.current_thread() is not threading.main_thread():  # only that thread receives signals
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


def _received(receiver: Connection, waiting: dict[Connection, Any]) -> str | None:
    try:
        kind, what = receiver.recv()
    except EOFError:
        process = waiting.pop(receiver)
        process.join()
        raise WorkerLost(_how_it_ended(process.exitcode)) from None
    if kind == "ended":
        waiting.pop(receiver)
        return None
    if kind == "failed":
        error, trace = what
        raise error from Elsewhere(f"in a worker:\n{trace}")
    if kind == "warned":
        warnings.warn(what, stacklevel=3)
        return None
    return str(what)


def _how_it_ended(code: int) -> str:
    how = f"was stopped by signal {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    kept = "everything finished is kept, and the same command goes on from there"
    if code == -signal.SIGKILL:
        return f"a worker {how}, usually for want of memory: {kept}; fewer workers need less"
    return f"a worker {how} in the middle of its work: {kept}"


def _take_turns(
    work: Callable[[Part], Iterator[str]], parts: Sequence[Part], turn: Any, sender: Connection, parent: int
) -> None:
    """A worker: does one part after the other until none is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C and ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # and if it ends, however, so do the workers
    if os.getppid() != parent:
        os._exit(1)
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # may start processes itself
    # A progress bar may have replaced them, with a lock that was held at the fork.
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # type: ignore[misc]
    # Threads of the libraries do not survive a fork, and the cores have their workers.
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    warnings.showwarning = lambda message, *_, **__: sender.send(("warned", _portable(message, UserWarning)))
    try:
        while True:
            with turn.get_lock():
                mine, turn.value = turn.value, turn.value + 1
            if mine >= len(parts):
                break
            for label in work(parts[mine]):
                sender.send(("did", label))
        sender.send(("ended", None))
    except Exception as error:
        sender.send(("failed", (_portable(error, RuntimeError), traceback.format_exc())))
    sender.close()


def _portable(error: Any, instead: type[Exception]) -> Any:
    """The error or warning itself if it can be pickled, else another one with the same message."""
    try:
        if type(error).__module__ not in sys.modules:
            raise ImportError
        pickle.loads(pickle.dumps(error))
    except Exception:
        return instead(f"{type(error).__name__}: {error}")
    return error
