"""Attribution methods: one file per method or close family, each a frozen dataclass, `method(model, batch) -> maps`.

Every class is importable from here: `from heatproof.methods import IntegratedGradients`.
"""

from __future__ import annotations

from typing import Any

from heatproof import registry


def __getattr__(name: str) -> Any:
    return registry.class_named("method", name, __name__)


def __dir__() -> list[str]:
    return registry.class_names("method")
