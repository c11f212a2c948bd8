"""Memory that passes use again and again stays with the process.

The C library hands freed memory back to the system as soon as a little lies idle, and the next micro-batch fetches it
again page by page, each of which the system fills with zeros. On small networks that was a tenth of a gradient and a
quarter of a forward.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the names of these settings in <malloc.h>
KEPT = 2**29  # bytes that may lie idle; more goes back
LARGEST = 2**25  # bytes; larger blocks come from the system and go back to it each time, glibc allows no more
USUAL = 2**26  # what glibc itself ends at once a process has freed large blocks

_users = 0


@contextmanager
def kept_memory() -> Iterator[None]:
    """While this lasts, freed memory is kept for the next pass; afterwards what lies idle is handed back.

    Works with glibc, does nothing elsewhere. A process started with such settings of its own keeps those.
    """
    global _users
    library = _glibc()
    if library is None or _settled():
        yield
        return
    _users += 1
    library.mallopt(TRIM_THRESHOLD, KEPT)
    library.mallopt(MMAP_THRESHOLD, LARGEST)
    try:
        yield
    finally:
        _users -= 1
        if not _users:
            library.mallopt(TRIM_THRESHOLD, USUAL)
            library.malloc_trim(0)


def _settled() -> bool:
    """Whether whoever started the process has decided when memory goes back."""
    own = any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"))
    return own or "_threshold" in os.environ.get("GLIBC_TUNABLES", "")


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    if platform.libc_ver()[0] != "glibc":
        return None
    return ctypes.CDLL(None)
