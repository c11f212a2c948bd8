"""Trackers of experiments that a finished run is written to: `--log wandb`, `mlflow`, `tensorboard`.

Each is one small module with a function `log(run)` on top of the tracker's own client, which must be installed.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path

from heatproof.errors import BadInput, UnknownName
from heatproof.loggers._summary import summarised
from heatproof.results import Results

CLIENTS = {"wandb": "wandb", "mlflow": "mlflow", "tensorboard": "tensorboard"}


def check(name: str) -> None:
    """Raises before any work is done for a tracker that is unknown or not installed."""
    if name not in CLIENTS:
        raise UnknownName.among("tracker", name, list(CLIENTS))
    if find_spec(CLIENTS[name]) is None:
        raise BadInput(f"--log {name} needs its client: pip install {CLIENTS[name]}")


def log(name: str, results: Results, out: Path) -> None:
    """Writes what a run found to a tracker: parameters, means with their intervals, the table and the report."""
    check(name)
    importlib.import_module(f"heatproof.loggers.{name}").log(summarised(results, out))
