"""The engine that a stored run was computed with, read from the files beside its study."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heatproof.storage import sealed_json
from heatproof.storage.atomic_file import content_of


@dataclass(frozen=True)
class StoredEngine:
    """Which engine, and the choices it had made; whether they make sense here is checked where they are used."""

    kind: Any = "auto"
    choices: Mapping[str, Any] | None = None

    @classmethod
    def beside(cls, study: Path) -> StoredEngine:
        """Of the run that wrote this study.json; the usual one where nothing is written."""
        if study.suffix == ".py":
            return cls()
        info, choices = (_read(study.with_name(name)) for name in ("info.json", "engine.json"))
        kind = info.get("engine_kind") if info else None
        return cls("reference" if kind == "reference" else "auto", choices)

    def of_kind(self, kind: str) -> StoredEngine:
        return replace(self, kind=kind)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        return sealed_json.read(content_of(file), file)
    except OSError:
        return None
    except sealed_json.Damaged as error:
        warnings.warn(f"{error}; it is not used", stacklevel=4)
        return None
