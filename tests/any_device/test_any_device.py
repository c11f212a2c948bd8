"""Nothing mixes devices: every component runs on a pretend device and gives the CPU's numbers there.

They have a process of their own, since the pretend device changes torch for good.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heatproof import registry

KINDS: tuple[registry.Kind, ...] = ("method", "metric", "imputer", "segmenter")
SWEEP = Path(__file__).with_name("sweep.py")


def problems(every: int) -> dict[str, dict[str, str]]:
    """What is wrong with every so-manyth component of each kind; empty where nothing is."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(SWEEP), f"--every={every}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, dict[str, str]] = {}
    for row in (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")):
        found.setdefault(row["kind"], {})[row["name"]] = row["problem"]
    return found


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_components_run_on_another_device_and_planted_faults_are_caught(every: int) -> None:
    found = problems(every)
    planted = found.pop("planted")
    assert len(planted) == 8
    assert planted.pop("sound") == ""
    assert all(planted.values()), f"not caught: {[name for name, problem in planted.items() if not problem]}"
    for kind in KINDS:
        assert set(found[kind]) == set(registry.names(kind)[::every])
    assert len(found["further"]) > 25 // every
    assert not {f"{kind} {name}": what for kind in found for name, what in found[kind].items() if what}
