"""The ranking by AUC-IoU with masks made worse on purpose."""

from __future__ import annotations

import math

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import table
from heatproof.report.typeset import MISSING, escape, number
from heatproof.stats.ranks import kendall_tau

METRIC = "auc_iou_changed_mask"
WORDS = {"eroded": "smaller", "dilated": "larger", "shifted": "out of place", "coarse": "coarser"}


def mask_quality(reading: Reading, main: Panel) -> str | None:
    """Who is first under each change, and how far the ranking is from the one with the masks as they are."""
    panels = [
        panel
        for panel in reading.panels
        if (panel.dataset, panel.model) == (main.dataset, main.model)
        and reading.info.metric(panel.metric).name == METRIC
        and len(reading.standings[panel].ranks) > 1
    ]
    if not panels or len(reading.standings[main].ranks) < 2:
        return None
    own = ranks_of(reading, main)
    rows = []
    for panel in panels:
        theirs, fields = ranks_of(reading, panel), reading.info.metric(panel.metric).fields
        change = str(fields.get("change", "eroded"))
        by = f"{100 * float(str(fields.get('amount', 0.03))):g} % of the side"
        rows.append(
            [WORDS.get(change, change), by, min(theirs, key=lambda m: theirs[m]), _shown(agreement(own, theirs))]
        )
    first = min(own, key=lambda m: own[m])
    kept = sum(row[2] == first for row in rows)
    words = (
        f"<p><strong>{escape(first)}</strong>, first with the masks as they are, stays first under {kept} of "
        f"{len(rows)} changes of the masks.</p>"
    )
    head = ("masks made", "by", "first", "Kendall’s tau with the main ranking")
    return f"<h4>With worse masks</h4>{words}{table(head, rows, words=3)}"


def ranks_of(reading: Reading, panel: Panel) -> dict[str, float]:
    return {method: ranks[0] for method, ranks in reading.standings[panel].ranks.items()}


def agreement(one: dict[str, float], other: dict[str, float]) -> float:
    """Kendall's tau of two rankings over the methods that both have."""
    shared = sorted(set(one) & set(other))
    if len(shared) < 2:
        return math.nan
    return kendall_tau([one[m] for m in shared], [other[m] for m in shared])


def _shown(tau: float) -> str:
    return MISSING if math.isnan(tau) else number(tau, 2)
