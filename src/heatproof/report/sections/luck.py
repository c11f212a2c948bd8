"""How much of a random method's score is luck: its repeats under other seeds, beside the spread over pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heatproof.errors import HeatproofError
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold, metric_heading, section, table
from heatproof.report.typeset import MISSING, counted, escape, number
from heatproof.stats.luck import Luck

LARGE = 0.25  # of the variance over pictures: more samples in the method would make its intervals visibly narrower


def luck(reading: Reading) -> str | None:
    """A table for every comparison in which random methods were repeated; None where none was."""
    found = {panel: some for panel in reading.panels if (some := _of_panel(reading, panel))}
    if not found:
        return None
    main = [panel for panel in found if panel in reading.main] or list(found)
    rest = [panel for panel in found if panel not in main]
    body = f'<p class="note">{_meaning(found)}</p>' + "".join(_table(reading, panel, found[panel]) for panel in main)
    if rest:
        body += fold(
            counted(len(rest), "further comparison"),
            "".join(_table(reading, panel, found[panel]) for panel in rest),
        )
    return section("luck", "How much is luck", _verdict({panel: found[panel] for panel in main}), body)


def _of_panel(reading: Reading, panel: Panel) -> Sequence[Luck]:
    try:
        return reading.run.luck(panel.metric, model=panel.model, dataset=panel.dataset)
    except HeatproofError:  # nothing to compare there
        return []


def _verdict(found: dict[Panel, Sequence[Luck]]) -> str:
    """Whose scores rest on the seed to a good part."""
    every = [one for some in found.values() for one in some if math.isfinite(one.share)]
    large = list(dict.fromkeys(one.method for one in every if one.share > LARGE))
    if not large:
        return "Another seed would hardly change the results of the random methods here."
    names = ", ".join(f"<strong>{escape(name)}</strong>" for name in large)
    return (
        f"More than {LARGE:.0%} of what varies from picture to picture is luck for {names}: with more samples in the "
        "method its intervals would be narrower."
    )


def _meaning(found: dict[Panel, Sequence[Luck]]) -> str:
    some = next(iter(found.values()))[0]
    return (
        f"Random methods explained {counted(some.repeated, 'picture')} again, under {some.seeds} seeds in all. Spread: "
        "the standard deviation of scores over pictures; luck: that over seeds on one picture, with a 95&nbsp;% "
        "interval that takes it for normal. The last column says how far the mean moves from one seed to another. "
        "Intervals and tests on this page hold luck already, since every picture has dice of its own."
    )


def _table(reading: Reading, panel: Panel, some: Sequence[Luck]) -> str:
    head = ("method", "mean", "spread over pictures", "luck", "luck / spread, squared", "mean moves by")
    rows = [
        [
            one.method,
            one.mean,
            one.spread,
            (f"{number(one.luck)} [{number(one.low)}, {number(one.high)}]", one.luck)
            if math.isfinite(one.luck)
            else MISSING,
            (f"{one.share:.0%}", one.share) if math.isfinite(one.share) else MISSING,
            one.moves,
        ]
        for one in some
    ]
    where = reading.named(panel)
    place = f"<h4>{escape(where)}</h4>" if where else ""
    return metric_heading(reading, panel.metric) + place + table(head, rows)
