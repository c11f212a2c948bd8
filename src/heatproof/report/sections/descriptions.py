"""Descriptive metrics, which rank no method."""

from __future__ import annotations

import pandas as pd

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import section, table
from heatproof.report.typeset import breakable


def descriptions(reading: Reading) -> str | None:
    """The mean of every descriptive metric by method, one table per data set and model; None if there is none."""
    labels = [label for label, about in reading.info.metrics.items() if about.measures == "description"]
    parts = []
    for dataset, model in reading.scores[["dataset", "model"]].drop_duplicates().itertuples(index=False):
        panels = [Panel(label, str(dataset), str(model)) for label in labels]
        panels = [panel for panel in panels if reading.has(panel)]
        if not panels:
            continue
        means = pd.DataFrame({panel.metric: reading.table(panel).mean() for panel in panels})
        methods = [method for method in reading.methods if method in means.index]
        rows = [[method, *(float(means[column][method]) for column in means.columns)] for method in methods]
        named = reading.named(panels[0])
        title = f"<h3>{breakable(named)}</h3>" if named else ""
        parts.append(title + table(["method", *means.columns], rows, control=reading.is_control))
    if not parts:
        return None
    lead = "These numbers say what maps are like. None of them says that a map is right, so they rank no method."
    return section("descriptions", "What the maps are like", lead, "".join(parts), named="The numbers")
