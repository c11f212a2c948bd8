"""The claims, a module per paper or question; importing this registers all of them, in the order of the page."""

from importlib import import_module

MODULES = (
    "pixel_flipping",
    "strategies",
    "threshold_free",
    "mosaics",
    "in_distribution",
    "relative_importance",
    "judges",
)

for name in MODULES:
    import_module(f"ledger.papers.{name}")
