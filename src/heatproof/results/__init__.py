"""The results of a run: tables, rankings, exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heatproof.results.results import Results

__all__ = ["Results"]


def __getattr__(name: str) -> Any:
    """Loaded when first used: the command line looks at a run's state without waiting for pandas."""
    if name == "Results":
        from heatproof.results.results import Results

        return Results
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
