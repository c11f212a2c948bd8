"""Memory freed between passes stays with the process while a pass is under way, and no longer."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heatproof.engine import machine
from heatproof.engine.machine import kept_memory

# In a process of its own: what others freed before would count too. It prints the bytes requested, how many came from
# the system when they were needed again at work, what it held then and afterwards, and how many came then.
FRESH = """
import dataclasses, resource
from pathlib import Path
import torch
from networks import small_cnn
from heatproof.engine import threads_for
from heatproof.engine.machine import kept_memory
from heatproof.types import View

PAGE, BLOCKS, BLOCK = resource.getpagesize(), 12, 20 * 2**20

def use_and_free():
    held = [torch.ones(BLOCK // 4) for _ in range(BLOCKS)]

def fetched():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    use_and_free()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * PAGE

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE

with AT_WORK:
    inside = min(fetched() for _ in range(8)), resident()  # the first ones fetch all, or what does not fit
print(BLOCKS * BLOCK, *inside, resident(), fetched())
"""


@pytest.mark.parametrize("at_work", ["kept_memory()", "threads_for([dataclasses.replace(small_cnn(), view=View(64))])"])
def test_memory_used_before_is_not_fetched_again(at_work: str) -> None:
    if machine._glibc() is None:  # other C libraries are left alone: nothing is promised
        return
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    ran = subprocess.run(
        [sys.executable, "-c", FRESH.replace("AT_WORK", at_work)],
        env={**settings, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    requested, again, held, afterwards, later = map(int, ran.stdout.split())
    assert again < 0.5 * requested
    assert afterwards < held - requested / 2  # handed back
    assert later > 0.5 * requested  # as if nothing had been


class Recorder:
    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []
        self.trimmed = 0

    def mallopt(self, name: int, value: int) -> int:
        self.calls.append((name, value))
        return 1

    def malloc_trim(self, pad: int) -> int:
        self.trimmed += 1
        return 1


def test_only_the_last_to_leave_hands_memory_back_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Recorder()
    monkeypatch.setattr(machine, "_glibc", lambda: library)

    def fail_inside() -> None:
        with kept_memory():
            with kept_memory():
                pass
            assert library.trimmed == 0
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert library.trimmed == 1
    assert library.calls[-1] == (machine.TRIM_THRESHOLD, machine.USUAL)


@pytest.mark.parametrize(
    ("name", "value"),
    [("MALLOC_TRIM_THRESHOLD_", "1000"), ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1000")],
)
def test_what_the_environment_says_stands(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Recorder()
    monkeypatch.setattr(machine, "_glibc", lambda: library)
    monkeypatch.setenv(name, value)
    with kept_memory():
        pass
    assert not library.calls
    assert not library.trimmed


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("requested for"))
    machine._glibc.cache_clear()
    try:
        with kept_memory():
            pass
    finally:
        machine._glibc.cache_clear()
