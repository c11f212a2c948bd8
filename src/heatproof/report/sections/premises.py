"""What a protocol takes for granted, stated where its numbers stand: that the model is right on the pictures."""

from __future__ import annotations

from collections.abc import Sequence

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold
from heatproof.report.sections.blocks import table as table_html
from heatproof.report.sections.pictures import misgivings
from heatproof.report.typeset import count, escape
from heatproof.results.run_info import Census


def rightness(reading: Reading, panels: Sequence[Panel], noun: str = "picture") -> str:
    """How often the models are right on what these panels judge, as HTML: a warning where they mostly are not."""
    places = {(panel.dataset, panel.model) for panel in panels}
    entries = [one for one in reading.info.pictures if (one.dataset, one.model) in places and one.accuracy]
    lines = "".join(f"<li>{escape(_line(one, noun, len(entries) > 1))}</li>" for one in entries)
    warnings = dict.fromkeys(map(misgivings, entries))
    return (f'<ul class="note">{lines}</ul>' if lines else "") + "".join(warnings)


def _line(entry: Census, noun: str, several: bool) -> str:
    assert entry.accuracy is not None
    where = f"{entry.model} on {entry.dataset}: " if several else ""
    share, low, high = (100 * value for value in (entry.accuracy.share, entry.accuracy.low, entry.accuracy.high))
    wrong = entry.known - entry.right
    apart = "" if not wrong else f"; on the other {count(wrong)} its maps explain an answer that is wrong"
    return (
        f"{where}the model is right on {count(entry.right)} of {count(entry.known)} {noun}s "
        f"({share:.0f} %, {low:.0f}–{high:.0f} %){apart}"
    )


def apart(reading: Reading, panel: Panel) -> str:
    """Means on the pictures that the model classifies correctly and on those that it does not; empty without any."""
    scores, known = reading.table(panel), reading.pictures
    if not len(known) or not len(scores.columns):
        return ""
    here = known[(known["dataset"] == panel.dataset) & (known["model"] == panel.model)].set_index("image")["right"]
    sides = [scores[scores.index.isin(here.index[here.eq(side)])] for side in (True, False)]
    if not len(sides[1]):
        return ""
    rows = []
    for method in scores.columns:
        cells: list[str | float | tuple[str, float]] = [str(method)]
        for side in sides:
            there = int(side[method].notna().sum())
            cells += [float(side[method].mean()) if there else float("nan"), (count(there), float(there))]
        rows.append(cells)
    direction = "" if reading.higher_is_better(panel.metric) else " ↓"
    head = (f"method, {panel.metric}", f"right{direction}", "images", f"wrong{direction}", "images")
    return fold("Where the model is right, and where it is wrong", table_html(head, rows, control=reading.is_control))
