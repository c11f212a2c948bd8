"""The engine that a stored run was computed with, read from the files beside its study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class StoredEngine:
    """Which engine, and the choices it had made; not looked at further, as anyone may have edited the files."""

    kind: Any = "auto"
    choices: Mapping[str, Any] | None = None

    @classmethod
    def beside(cls, study: Path) -> StoredEngine:
        """Of the run that wrote this study.json; the usual one where nothing is written."""
        if study.suffix == ".py":
            return cls()
        info, choices = (_read(study.with_name(name)) for name in ("info.json", "engine.json"))
        kind = info.get("engine_kind") if isinstance(info, dict) else None
        return cls("reference" if kind == "reference" else "auto", choices)

    def of_kind(self, kind: str) -> StoredEngine:
        return replace(self, kind=kind)


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
