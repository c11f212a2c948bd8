"""The pictures: how many of each class, and how often the model is right on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import fold, section
from heatproof.report.typeset import breakable, count, escape
from heatproof.results.census_text import in_words

LEAD = (
    "Scores are of these pictures and of this model’s answers to them. The interval of its accuracy is Wilson’s, at "
    "95&nbsp;%."
)
MOST = 1200  # classes in a table


def pictures(reading: Reading) -> str | None:
    """Sentences per data set and model, class counts behind a fold; nothing for runs that did not count them."""
    entries = reading.info.get("pictures") or []
    if not entries:
        return None
    several = len(entries) > 1
    return section("pictures", "The pictures", LEAD, "".join(_entry(entry, several) for entry in entries))


def _entry(entry: Mapping[str, Any], named: bool) -> str:
    title = f"<h3>{breakable(str(entry['dataset']))} · {breakable(str(entry['model']))}</h3>" if named else ""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="num">{count(times)}</td></tr>'
        for name, times in list(entry["classes"].items())[:MOST]
    )
    table = fold("Pictures by class", f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>') if rows else ""
    narrow = "".join(
        f'<tr><th scope="row">{breakable(name)}</th><td class="num">{low:.3f} … {high:.3f}</td></tr>'
        for name, (low, high) in entry["narrow"].items()
    )
    if narrow:
        table += fold("Of little value range", f'<div class="scroll"><table><tbody>{narrow}</tbody></table></div>')
    return f"{title}<p>{escape(in_words(entry))}</p>{table}"
