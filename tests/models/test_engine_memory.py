"""Memory freed between passes stays with the process while somebody is at work, and no longer."""

from __future__ import annotations

import ctypes
import dataclasses
import resource
from pathlib import Path

import pytest
import torch
from networks import small_cnn

from heatproof.models.engine import memory, threads_for
from heatproof.models.engine.memory import kept_memory
from heatproof.types import View

PAGE = resource.getpagesize()
BLOCKS, BLOCK = 12, 20 * 2**20  # bytes: more in all than the C library would let lie idle by itself


def use_and_free() -> None:
    held = [torch.ones(BLOCK // 4) for _ in range(BLOCKS)]
    held.clear()


def pages_fetched() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    use_and_free()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.parametrize("at_work", ["kept_memory", "threads_for"])
def test_memory_used_before_is_not_fetched_again(at_work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    if memory._glibc() is None:  # other C libraries are left alone: nothing is promised
        return
    work = kept_memory() if at_work == "kept_memory" else threads_for([dataclasses.replace(small_cnn(), view=View(64))])
    with work:
        use_and_free()
        idle = resident()
        fetched = pages_fetched()
    assert fetched < 0.1 * BLOCKS * BLOCK / PAGE
    assert resident() < idle - BLOCKS * BLOCK / 2  # handed back
    assert pages_fetched() > 0.5 * BLOCKS * BLOCK / PAGE  # as if nothing had been


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
    monkeypatch.setattr(memory, "_glibc", lambda: library)

    def fail_inside() -> None:
        with kept_memory():
            with kept_memory():
                pass
            assert library.trimmed == 0
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert library.trimmed == 1
    assert library.calls[-1] == (memory.TRIM_THRESHOLD, memory.USUAL)


@pytest.mark.parametrize(
    ("name", "value"),
    [("MALLOC_TRIM_THRESHOLD_", "1000"), ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1000")],
)
def test_what_the_environment_says_stands(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Recorder()
    monkeypatch.setattr(memory, "_glibc", lambda: library)
    monkeypatch.setenv(name, value)
    with kept_memory():
        pass
    assert not library.calls
    assert not library.trimmed


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("asked for"))
    memory._glibc.cache_clear()
    try:
        with kept_memory():
            pass
    finally:
        memory._glibc.cache_clear()
