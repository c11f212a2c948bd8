"""One writer per run directory."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from heatproof.errors import HeatproofError
from heatproof.storage.any_path import is_remote
from heatproof.storage.atomic_file import NotWritable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FILE = ".lock"


class InUse(HeatproofError):
    """A run directory that another run is writing."""


@contextmanager
def held(root: Path) -> Iterator[bool]:
    """Holds the lock of a run directory; a second process gets `InUse`. Yields whether there are locks here."""
    if is_remote(root):
        yield False
        return
    path = root / FILE
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise NotWritable(f"{path} cannot be written ({error.strerror}): choose another --out") from error
    with file:
        locked = _locked(file)
        if locked is False:
            raise InUse(f"{root} is being written by another run{_holder(file)}: wait for it, or choose another --out")
        file.truncate(0)
        holder = {"process": os.getpid(), "host": platform.node(), "since": time.strftime("%H:%M:%S")}
        with suppress(OSError):  # it is for people; a full disk has a sentence for the first file that counts
            os.write(file.fileno(), json.dumps(holder).encode())
        yield bool(locked)


def _locked(file: IO[str]) -> bool | None:
    """Whether the lock was acquired; None without locks. It ends with the last process that has the file open."""
    if fcntl is None:
        return None
    for _ in range(25):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.2)  # workers of a run that was killed end a moment after it
        except OSError:  # a file system without locks
            return None
        else:
            return True
    return False


def _holder(file: IO[str]) -> str:
    file.seek(0)
    try:
        who = json.load(file)
        return f" (process {who['process']} on {who['host']}, since {who['since']})"
    except (ValueError, LookupError, TypeError):
        return ""
