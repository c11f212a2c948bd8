"""One self-contained HTML page, drawn from a finished run's numbers."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from heatproof.errors import BadInput
from heatproof.report.page import page
from heatproof.report.run_numbers import FinishedRun, Reading
from heatproof.report.short_names import Named
from heatproof.storage.any_path import folder
from heatproof.storage.atomic_file import write_atomically

__all__ = ["report"]


def report(results: FinishedRun, path: str | Path) -> Path:
    """Write the report of a finished run; the file is wholly there or not there. Returns its path."""
    target = folder(path)
    if target.is_dir():
        target = target / "report.html"
    if not len(results.scores):
        raise BadInput("a report needs at least one row of scores, got an empty table: run the study first.")
    text = page(Reading(Named(results))).encode("utf-8", "replace").decode()
    write_atomically(target, sealed(text, results.commit).encode())
    return target


def sealed(text: str, commit: str = "") -> str:
    """The page with the commit of its results and its own hash appended: `heatproof verify` checks them."""
    text += f"<!-- results {commit} -->\n" if commit else ""
    return f"{text}<!-- sha256 {hashlib.sha256(text.encode()).hexdigest()} -->\n"


def is_intact(payload: bytes) -> bool:
    """Whether a page matches the hash at its end."""
    text, mark, _ = payload.decode("utf-8", "replace").rpartition("<!-- sha256 ")
    return bool(mark) and sealed(text).encode() == payload


def shown_commit(payload: bytes) -> str:
    """The commit of the results that a page shows; empty if the page names none."""
    found = re.search(rb"<!-- results (\w+) -->\n<!-- sha256 \w+ -->\n\Z", payload)
    return found[1].decode() if found else ""
