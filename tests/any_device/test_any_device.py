"""Nothing mixes devices: every component runs on a pretend device and gives the CPU's numbers there.

Each kind has a process of its own, since the pretend device changes torch for good.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heatproof import registry

SWEEP = Path(__file__).with_name("sweep.py")


@functools.cache
def problems(kind: str) -> dict[str, str]:
    """What is wrong with each component of a kind; empty where nothing is."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(SWEEP), kind]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["name"]: row["problem"] for row in rows}


@pytest.mark.parametrize("kind", ["method", "metric", "imputer", "segmenter"])
def test_every_component_runs_on_another_device(kind: registry.Kind) -> None:
    found = problems(kind)
    assert set(found) == set(registry.names(kind))
    assert not {name: problem for name, problem in found.items() if problem}


def test_the_engine_fud_tcav_image_quality_and_the_audits_run_on_another_device() -> None:
    found = problems("further")
    assert len(found) > 25
    assert not {name: problem for name, problem in found.items() if problem}


def test_planted_faults_are_caught() -> None:
    found = problems("planted")
    assert len(found) == 8
    assert found.pop("sound") == ""
    assert all(found.values()), f"not caught: {[name for name, problem in found.items() if not problem]}"
