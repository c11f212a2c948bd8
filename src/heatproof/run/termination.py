"""SIGTERM handled as Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """A run that is terminated keeps what it has, like one that is stopped by hand."""
    if threading.current_thread() is not threading.main_thread():  # only that thread may handle signals
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
