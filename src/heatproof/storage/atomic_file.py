"""Files that are wholly there or not there, also across a power cut.

Every file of a run is written beside its place, synced, renamed into it, and then the folder is synced; in an object
store it is put whole. Only these few functions touch the disk, so a test can make each step fail or be the last.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from heatproof.errors import HeatproofError
from heatproof.storage.any_path import is_remote

PARTIAL = ".partial-"  # prefix of unfinished files, by which the remains of a crash are found


class StoreFull(HeatproofError):
    """Nothing more can be written; everything finished so far is safe."""


class NotWritable(HeatproofError, OSError):
    """A place that cannot be written to."""


class Sink:
    """A new file that hashes what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.closed = False  # pyarrow reads it

    def write(self, payload: bytes) -> int:
        self._hash.update(payload)
        return self._file.write(payload)

    def flush(self) -> None:
        self._file.flush()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


@contextmanager
def atomic_writer(path: Path) -> Iterator[Sink]:
    """A sink whose content appears at `path` if the block ends without an error, and not at all otherwise."""
    if is_remote(path):
        with _put_whole(path) as sink:
            yield sink
        return
    beside = path.parent / f"{PARTIAL}{path.name}-{uuid.uuid4().hex}"
    try:
        _make_folder(path.parent)
        with _created(beside) as file:
            yield Sink(file)
            file.flush()
            _sync(file)
        _rename(beside, path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, HeatproofError):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(
                f"no space left for {path}: everything finished is safe; free some space and run the same command again"
            ) from error
        raise NotWritable(f"{path} cannot be written ({error.strerror}): choose another place for it") from error
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


@contextmanager
def _put_whole(path: Any) -> Iterator[Sink]:
    """A sink for a file of an object store, which shows a file when all of it has arrived."""
    with tempfile.NamedTemporaryFile() as file:
        sink = Sink(file)
        yield sink
        sink.flush()
        try:
            path.fs.put_file(file.name, path.path)
        except OSError as error:
            raise NotWritable(f"{path} cannot be written ({error}): choose another place for it") from error


def write_atomically(path: Path, payload: bytes) -> None:
    """Writes the whole file or nothing."""
    with atomic_writer(path) as sink:
        sink.write(payload)


def sha256_of(path: Path) -> str:
    """The hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_of(path: Path) -> bytes:
    """The bytes of a file. A pipe would block and a device never ends: these count as missing."""
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
    return path.read_bytes()


def leftovers(folder: Path) -> Iterator[Path]:
    """Unfinished files left by a crash."""
    if not is_remote(folder) and folder.is_dir():
        yield from (path for path in folder.rglob(f"{PARTIAL}*") if path.is_file())


def _make_folder(folder: Path) -> None:
    """Creates a folder durably: its name is an entry of the parent folder, which must be synced as well."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in reversed(new):
        _sync_folder(path.parent)


def _created(path: Path) -> BinaryIO:
    return path.open("xb")


def _sync(file: BinaryIO) -> None:
    os.fsync(file.fileno())


def _rename(beside: Path, path: Path) -> None:
    beside.replace(path)


def _sync_folder(folder: Path) -> None:
    """Makes a rename durable. Windows has no such call, and some network file systems refuse it: both do without."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
