"""Can this machine compute in bfloat16? Some say so and then end the process on the first instruction."""

from __future__ import annotations

import functools
import logging
import subprocess
import sys
from dataclasses import replace

import torch

from heatproof.models.engine.setting import Settings

log = logging.getLogger("heatproof")

TRIAL = """
import torch
network = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3), torch.nn.Flatten(), torch.nn.Linear(1152, 64))
with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
    for size in (1, 4, 16):
        network(torch.rand(size, 16, 8, 8))
"""


@functools.cache
def works(kind: str) -> bool:
    """Tried by another process on a CPU: an illegal instruction cannot be caught by one's own."""
    if kind != "cpu":
        return True
    trial = subprocess.run([sys.executable, "-c", TRIAL], capture_output=True, check=False)
    return trial.returncode == 0


def possible(settings: Settings, device: torch.device) -> Settings:
    """The settings, in full precision where bfloat16 was asked for and cannot be had."""
    if settings.precision == "full" or works(device.type):
        return settings
    log.warning("bfloat16 does not work on this %s: full precision is used", device.type)
    return replace(settings, precision="full")
