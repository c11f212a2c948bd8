"""Who explains: a file per method or close family, each method a frozen dataclass, `method(model, batch) -> maps`.

Every class can be had from here: `from heatproof.methods import IntegratedGradients`.
"""

from __future__ import annotations

from typing import Any

from heatproof import registry


def __getattr__(name: str) -> Any:
    return registry.class_named("method", name, __name__)


def __dir__() -> list[str]:
    return registry.class_names("method")
