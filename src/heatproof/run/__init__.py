"""The loop and what surrounds it: shards, units, the store, the commit of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heatproof.run.loop import run

__all__ = ["run"]


def __getattr__(name: str) -> Any:
    """Loaded when first used: the command line must not wait for torch."""
    if name == "run":
        from heatproof.run.loop import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
