"""One self-contained HTML page, drawn from a finished run's numbers."""

from __future__ import annotations

from pathlib import Path

from heatproof.errors import BadInput
from heatproof.report.naming import Named
from heatproof.report.page import page
from heatproof.report.reading import FinishedRun, Reading
from heatproof.store import write_atomically

__all__ = ["report"]


def report(results: FinishedRun, path: str | Path) -> Path:
    """Write the report of a finished run; the file is wholly there or not there. Returns its path."""
    target = Path(path)
    if target.is_dir():
        target = target / "report.html"
    if not len(results.scores):
        raise BadInput("a report needs at least one row of scores, got an empty table: run the study first.")
    text = page(Reading(Named(results)))
    write_atomically(target, text.encode("utf-8", "replace"))
    return target
