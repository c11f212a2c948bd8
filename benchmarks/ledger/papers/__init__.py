"""The claims, a module per paper or question; importing one registers its recipes and rows."""

from __future__ import annotations

from importlib import import_module

MODULES = ("pixel_flipping", "strategies", "threshold_free", "mosaics", "in_distribution", "relative_importance")


def register() -> None:
    """All papers, in the order of the page."""
    for name in MODULES:
        import_module(f"ledger.papers.{name}")
