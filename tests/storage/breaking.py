"""A disk that fails: every create, write, sync and rename can be made to fail, or to be the last thing that happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from heatproof.storage import atomic_file

STEPS = ("_created", "_sync", "_rename", "_sync_folder")
KILLED = "kill"


class Disk:
    """Counts the steps of `atomic_file`; at step `at` the disk fails with an errno, or the process is killed."""

    def __init__(self, at: int = -1, how: int | str = KILLED) -> None:
        self.at, self.how, self.steps = at, how, 0

    def step(self) -> None:
        self.steps += 1
        if self.steps - 1 < self.at or self.at < 0:
            return
        if self.how == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.steps - 1 == self.at or self.how == 28:  # a full disk stays full
            raise OSError(self.how, os.strerror(int(self.how)))


class BreakingFile:
    """A file whose writes are steps; half of what is written reaches the disk before one fails."""

    def __init__(self, file: BinaryIO, disk: Disk) -> None:
        self._file, self._disk = file, disk

    def write(self, payload: bytes) -> int:
        if self._disk.steps == self._disk.at:
            self._file.write(bytes(payload)[: len(payload) // 2])
            self._file.flush()
        self._disk.step()
        return self._file.write(payload)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> BreakingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


@contextmanager
def breaking(disk: Disk) -> Iterator[Disk]:
    """Put the disk under every write of a run."""
    real = {name: getattr(atomic_file, name) for name in STEPS}

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            disk.step()
            made = real[name](*given)
            return BreakingFile(made, disk) if name == "_created" else made

        return call

    for name in STEPS:
        setattr(atomic_file, name, wrapped(name))
    try:
        yield disk
    finally:
        for name, function in real.items():
            setattr(atomic_file, name, function)


def in_a_fork(work: Callable[[], object]) -> int:
    """Do something in a process of its own; its exit status, negative if a signal ended it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:
            Path(os.devnull).write_text(str(error))
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
