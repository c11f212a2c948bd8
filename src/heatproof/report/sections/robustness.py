"""Robustness beside faithfulness: a map that hardly moves is worth something only if it is also right."""

from __future__ import annotations

from heatproof.report.charts import Point, scatter
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections import section_of
from heatproof.report.sections.blocks import section
from heatproof.report.typeset import breakable

MOVES, HOLDS = "avg_sensitivity", "single_deletion"


@section_of("robustness")
def robustness(reading: Reading) -> str | None:
    """One chart per data set and model: how far maps move, and how well they order what the answer needs."""
    names = {label: about.name for label, about in reading.info.metrics.items()}
    figures = []
    for dataset, model in reading.settings:
        here = {
            names.get(one.metric): one
            for one in reversed(reading.panels)
            if (one.dataset, one.model) == (dataset, model) and reading.has(one)
        }
        moves, holds = here.get(MOVES), here.get(HOLDS)
        if moves is not None and holds is not None:
            named = reading.named(moves)
            figures.append((f"<h3>{breakable(named)}</h3>" if named else "") + _chart(reading, moves, holds))
    if not figures:
        return None
    lead = "To the left are maps that hardly move under a little noise, at the top those that are also right."
    rest = (
        "At the top are maps that order the parts of the picture as the answer does when each is hidden. A map that "
        "ignores the picture does not move at all: robustness alone is no virtue."
    )
    return section(
        "robustness",
        "Do maps hold still, and are they right?",
        lead,
        "".join(figures[1:]),
        picture=figures[0],
        rest=rest,
    )


def _chart(reading: Reading, moves: Panel, holds: Panel) -> str:
    across, up = reading.table(moves).mean(), reading.table(holds).mean()
    points = [
        Point(
            method,
            float(across[method]),
            float(up[method]),
            reading.colours.get(method),
            reading.is_control(method),
        )
        for method in reading.methods
        if method in across.index and method in up.index
    ]
    drawn = scatter(
        points,
        title="How far maps move under noise, and how well they order what the answer needs",
        x_label=f"{moves.metric} (lower moves less)",
        y_label=f"{holds.metric} (higher is better)",
    )
    return f"<figure>{drawn}</figure>"
