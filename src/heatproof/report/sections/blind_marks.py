"""The marks of methods that a blind control beats or cannot be separated from, and their legend."""

from __future__ import annotations

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.typeset import escape
from heatproof.stats.against_blind import MARKS, MEANING, legend


def marked(reading: Reading, panel: Panel, method: str) -> str:
    """The method's name with its mark in this panel, as text."""
    return f"{method}{MARKS.get(reading.against_blind(panel).get(method, ''), '')}"


def blind_mark(reading: Reading, panel: Panel, method: str) -> str:
    """The mark alone, as HTML that explains itself; empty for methods that beat every blind control."""
    standing = reading.against_blind(panel).get(method, "")
    if standing not in MARKS:
        return ""
    return f'<abbr title="{escape(MEANING[standing])}">{MARKS[standing]}</abbr>'


def blind_legend(reading: Reading) -> str:
    """What the marks on the page mean, as HTML with a space before it; empty where no method has one."""
    met = {standing for panel in reading.panels for standing in reading.against_blind(panel).values()}
    found = legend(met)
    return f" {escape(found)}" if found else ""
