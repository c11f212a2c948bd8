"""Who comes first in each main comparison, and how the others stand to maps that look at nothing: a table."""

from __future__ import annotations

from collections.abc import Sequence

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.typeset import breakable, counted, escape, listed

SHOWN = 6  # comparisons; all of them follow in words
NAMED = 3  # methods of a cell; where there are more, they are counted


def first_places(reading: Reading, judged: Sequence[Panel]) -> str:
    """One row per comparison; empty where there is none."""
    if not judged:
        return ""
    blind = any(reading.blind(panel) for panel in judged)
    rows = "".join(_row(reading, panel, blind) for panel in judged[:SHOWN])
    heads = ["by", "first", "beats", *["beat every blind map", "beaten by a blind map"] * blind]
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    more = len(judged) - SHOWN
    note = f'<p class="note">{counted(more, "further comparison")} below.</p>' if more > 0 else ""
    return (
        f'<div class="scroll"><table class="places"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"{note}"
    )


def _row(reading: Reading, panel: Panel, blind: bool) -> str:
    ranks, tests = reading.standings[panel].ranks, reading.pairs(panel)
    solid = tests.beats() if tests else set()
    best = min(rank for rank, _, _ in ranks.values())
    first = [method for method, (rank, _, _) in ranks.items() if rank == best]
    others = [method for method in ranks if method not in first]
    beaten = [other for other in others if all((one, other) in solid for one in first)]
    share = "all others" if beaten == others else f"{len(beaten)} of {len(others)}" if beaten else "no other for sure"
    where = reading.named(panel)
    beside = f"<small>{escape(where)}</small>" if where else ""
    cells = [_names(first, "strong"), share if others else "all share it"]
    if blind:
        standing = reading.against_blind(panel)
        clear, worse = ([one for one, met in standing.items() if met == which] for which in ("clear", "beaten"))
        cells += [f"{len(clear)} of {len(standing)}", _names(worse, "span") if worse else "none"]
        cells = cells if reading.blind(panel) else [*cells[:2], "none ran", ""]
    return (
        f'<tr><th scope="row">{breakable(panel.metric)}{beside}</th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _names(methods: Sequence[str], tag: str) -> str:
    if len(methods) > NAMED:
        return f'<span title="{escape(listed(methods))}">{len(methods)} methods</span>'
    return listed([f"<{tag}>{breakable(one)}</{tag}>" for one in methods])
