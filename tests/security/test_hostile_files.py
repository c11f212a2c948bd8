"""Weights, models, maps, pictures and caches of a stranger: nothing runs, nothing hangs, memory stays small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_files import CASES, SECONDS

MEGABYTES = 1000
READ = {name for name in CASES if name.startswith("cache")}  # these are passed over; all others are refused


def _outcomes(folder: Path, bomb: int) -> dict[str, Any]:
    """What became of each file, in processes of which each began with nothing but heatproof imported."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("hostile_files.py")
    words = [sys.executable, script, folder, str(bomb)]
    answer = subprocess.run(words, env=environment, capture_output=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def _harmless(name: str, found: dict[str, Any]) -> bool:
    wanted = "read: same answer" if name in READ else "refused: "
    quick = found["seconds"] < SECONDS and found["megabytes"] < MEGABYTES
    return quick and not found["ran"] and found["outcome"].startswith(wanted)


@pytest.mark.parametrize("bomb", [64, pytest.param(2048, marks=pytest.mark.slow)])
def test_nothing_runs_hangs_or_fills_the_memory(tmp_path: Path, bomb: int) -> None:
    found = _outcomes(tmp_path, bomb)
    assert found.keys() == CASES.keys()
    assert {name: one for name, one in found.items() if not _harmless(name, one)} == {}


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 40
