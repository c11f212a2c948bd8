"""Every test gets a cache directory of the whole run's, never the user's own."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Drawn pictures and measured batch sizes are shared by the tests of one run, and by its parallel workers.
_shared = Path(tempfile.gettempdir()) / f"heatproof-tests-{os.getuid() if hasattr(os, 'getuid') else 0}"
os.environ["HEATPROOF_CACHE"] = str(_shared)
# Tests rewrite modules within a second, which stored bytecode would not notice.
sys.dont_write_bytecode = True
# No test can tell whether bytes have reached the disk, and a run waits for it some seventy times.
os.fsync = lambda _: None

settings.register_profile("heatproof", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("heatproof")


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard as on a terminal, also where tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def each_unit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that writes each unit when it is put, and not after some seconds."""
    from heatproof.run import store

    monkeypatch.setattr(store, "SOON", 0.0)
    monkeypatch.setattr(store, "SHARE", 0.0)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Two test workers on two cores: one thread each."""
    import torch

    torch.set_num_threads(1)
