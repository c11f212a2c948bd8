"""torchvision, imported with its repair where needed, or an error that says what to install."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from heatproof import torchvision_import
from heatproof.errors import Missing


def import_torchvision(purpose: str) -> Any:
    """The torchvision package, its import repaired where needed, or `Missing` with what to install."""
    if importlib.util.find_spec("torchvision") is None:
        raise Missing.package("torchvision", "vision", purpose)
    torchvision_import.mend()
    try:
        return importlib.import_module("torchvision")
    except (ImportError, OSError, RuntimeError) as error:
        raise Missing(
            f"{purpose} needs torchvision, which is installed but cannot be imported ({error}): "
            "install the torchvision that belongs to this torch"
        ) from error
