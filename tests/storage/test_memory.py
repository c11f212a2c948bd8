"""A run's memory does not grow with its pictures."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "memory.py"


@pytest.fixture(scope="module")
def memory() -> ModuleType:
    spec = importlib.util.spec_from_file_location("memory", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gathering_twice_the_rows_takes_no_more_memory(memory: ModuleType) -> None:
    assert memory.peak("gathering", 200_000) < memory.peak("gathering", 100_000) + 40  # whole tables took 1.1 kB a row


@pytest.mark.slow
def test_gathering_many_rows_takes_little_more_than_few(memory: ModuleType) -> None:
    assert memory.peak("gathering", 240_000) < memory.peak("gathering", 24_000) + 150


@pytest.mark.slow
def test_ten_times_the_pictures_take_at_most_30_mb_more(memory: ModuleType) -> None:
    assert memory.peak("loop", 5_000) <= memory.peak("loop", 500) + 30
