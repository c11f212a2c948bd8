"""The mark of methods that amplify float noise, and what it means for their scores."""

from __future__ import annotations

from heatproof.report.run_numbers import Reading
from heatproof.report.typeset import escape, listed

MARK = "†"


def mark(reading: Reading, method: str) -> str:
    """HTML to put after the name of a numerically unstable method; empty for others."""
    return f' <abbr title="numerically unstable">{MARK}</abbr>' if reading.is_unstable(method) else ""


def instability(reading: Reading) -> str:
    """Which methods are numerically unstable and what follows, as HTML; empty where none is."""
    names = [method for method in reading.methods if reading.is_unstable(method)]
    if not names:
        return ""
    one = len(names) == 1
    words = (
        f" {MARK} Numerically unstable: {listed(names)}. Float noise, as between two machines or batch sizes, moves "
        f"{'its' if one else 'their'} maps visibly and {'its' if one else 'their'} scores with them; "
    )
    if reading.info.engine_kind == "reference":
        return escape(words + "this run was computed by the reference engine, which repeats them.")
    return escape(words) + "only <code>--engine reference</code> repeats them."
