"""Metrics: each judges a heatmap by one number per image.

Every class can be imported from here: `from heatproof.metrics import SRG, AUCIoU`.
"""

from __future__ import annotations

from typing import Any

from heatproof import registry


def __getattr__(name: str) -> Any:
    return registry.class_named("metric", name, __name__)


def __dir__() -> list[str]:
    return registry.class_names("metric")
