"""Input independence at every threshold: the share of pictures whose map changes by no more than t, over t."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from heatproof.report.charts import Line, curves, small_multiples
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold
from heatproof.results.protocol_notes import RelativeImportanceNotes

THRESHOLDS = tuple(np.linspace(0, 1, 21).round(2).tolist())
PUBLISHED = 0.1


def iir_thresholds(reading: Reading, noted: Sequence[RelativeImportanceNotes]) -> str:
    """One curve per method from the mean relative change, which the run has measured; empty without it."""
    labels = {
        label for one in noted if one.part == "iir" for label, variant in one.metrics.items() if variant.is_change
    }
    charts = []
    for panel in (Panel(label, *setting) for label in sorted(labels) for setting in reading.settings):
        if reading.has(panel):
            charts.append((f"{panel.model} on {panel.dataset}", _chart(reading, reading.table(panel))))
    if not charts:
        return ""
    words = (
        f"<p>The published threshold is {PUBLISHED}. Where two curves cross, the order of these methods hangs on it. A "
        "constant map is 1 everywhere.</p>"
    )
    return fold("Input independence at every threshold", words + small_multiples(charts))


def within(changes: pd.Series[float], thresholds: Sequence[float] = THRESHOLDS) -> list[float]:
    """The share of pictures whose change is at most each threshold; of those that have one."""
    known = changes.dropna().to_numpy()
    return [float((known <= threshold).mean()) if len(known) else float("nan") for threshold in thresholds]


def _chart(reading: Reading, table: pd.DataFrame) -> str:
    lines = [
        Line(
            str(method),
            THRESHOLDS,
            within(table[method]),
            colour=reading.colours.get(str(method)),
            control=reading.is_control(str(method)),
        )
        for method in table.columns
        if table[method].notna().any()
    ]
    return curves(lines, title="Input independence over the threshold", x_label="threshold t", y_label="share")
