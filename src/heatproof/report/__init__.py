"""One self-contained HTML page, drawn from a finished run's numbers."""

from __future__ import annotations

import hashlib
from pathlib import Path

from heatproof.errors import BadInput
from heatproof.report.page import page
from heatproof.report.run_numbers import FinishedRun, Reading
from heatproof.report.short_names import Named
from heatproof.storage.atomic_file import write_atomically

__all__ = ["report"]


def report(results: FinishedRun, path: str | Path) -> Path:
    """Write the report of a finished run; the file is wholly there or not there. Returns its path."""
    target = Path(path)
    if target.is_dir():
        target = target / "report.html"
    if not len(results.scores):
        raise BadInput("a report needs at least one row of scores, got an empty table: run the study first.")
    text = page(Reading(Named(results))).encode("utf-8", "replace").decode()
    write_atomically(target, sealed(text).encode())
    return target


def sealed(text: str) -> str:
    """A page with its own hash in its last line, so that `heatproof verify` can tell whether it is as it was drawn."""
    return f"{text}<!-- sha256 {hashlib.sha256(text.encode()).hexdigest()} -->\n"


def is_intact(payload: bytes) -> bool:
    """Whether a page is as it was drawn."""
    text, mark, _ = payload.decode("utf-8", "replace").rpartition("<!-- sha256 ")
    return bool(mark) and sealed(text).encode() == payload
