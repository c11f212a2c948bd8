"""The sanity checks side by side: does a map depend on the model, on the class, and on visible pixels?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections import section_of
from heatproof.report.sections.blocks import section, table
from heatproof.report.sections.ranking import panel_chart
from heatproof.report.typeset import breakable, fixed

# What each check finds in the worst map, by the metric's registered name.
WORST = {
    "mprt": "changes least when the model forgets what it learnt",
    "random_logit": "changes least when another class is explained",
    "sensitivity_axiom": "puts most of its weight on pixels that the model cannot see",
}


@section_of("sanity")
def sanity(reading: Reading) -> str | None:
    """One table per data set and model: the mean of every check, lower is better but where the head says otherwise."""
    parts = []
    for dataset, model in reading.settings:
        panels = [one for one in reading.panels if (one.dataset, one.model) == (dataset, model) and reading.has(one)]
        if panels:
            named = reading.named(panels[0])
            parts.append(
                (f"<h3>{breakable(named)}</h3>" if named else "") + _worst(reading, panels) + _table(reading, panels)
            )
    if not parts:
        return None
    lead = (
        "Similarity to the map of the intact model: a map that does not depend on what the model learnt scores 1, as "
        "the blind controls do."
    )
    rest = (
        "Similarities are to the map of the intact model, or of the explained class: a map that is blind to either "
        "scores 1, as the controls show. A map that is multiplied by the picture keeps some similarity without being "
        "blind. Passing means that a map is not blind, not that it is right."
    )
    main = [panel for panel in reading.main if registered(reading, panel) in WORST]
    picture = panel_chart(reading, main[0]) if main else ""
    return section("sanity", "Do maps depend on what they explain?", lead, "".join(parts), picture=picture, rest=rest)


def registered(reading: Reading, panel: Panel) -> str:
    """The registered name of a panel's metric."""
    return reading.info.metric(panel.metric).name


def _table(reading: Reading, panels: Sequence[Panel]) -> str:
    means = pd.DataFrame({one.metric: reading.table(one).mean() for one in panels})
    methods = [method for method in reading.methods if method in means.index]
    head = ["method", *(f"{one.metric}{'' if reading.higher_is_better(one.metric) else ' ↓'}" for one in panels)]
    rows = [[method, *(float(means[column][method]) for column in means.columns)] for method in methods]
    return table(head, rows, control=reading.is_control)


def _worst(reading: Reading, panels: Sequence[Panel]) -> str:
    """The contestant that each check finds nearest to blind, in a sentence, beside what the blind controls score."""
    items = []
    for panel in panels:
        name = registered(reading, panel)
        means = reading.contenders(panel).mean()
        blind = [method for method in reading.table(panel).columns if reading.is_blind(method)]
        if name not in WORST or len(means) < 2:
            continue
        worst = str(means.idxmax())
        beside = f"; blind maps {fixed(float(reading.table(panel)[blind].mean().mean()), 2)}" if blind else ""
        items.append(
            f"<li><strong>{breakable(worst)}</strong> {WORST[name]} ({breakable(panel.metric)} "
            f"{fixed(float(means[worst]), 2)}{beside}).</li>"
        )
    return f"<ul>{''.join(items)}</ul>" if items else ""
