"""The ranking: every method at a glance, then each metric with intervals."""

from __future__ import annotations

import math

from heatproof.report.charts import Estimate, interval_ranking, small_multiples
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blind_marks import blind_legend, blind_mark, marked
from heatproof.report.sections.blocks import fold, lower, metric_heading, section, table, unfolding
from heatproof.report.sections.instability import instability, mark
from heatproof.report.typeset import MISSING, breakable, counted, escape, number

NARROW = 4  # so many columns let two scoreboards stand side by side
ALL = "All rankings"
SHOWN = 6  # metrics in full; further ones are behind a fold


def ranking(reading: Reading) -> str | None:
    """A scoreboard per data set and model, and a dot-and-interval chart per metric."""
    if not reading.panels:
        return None
    rest = (
        "Bars are bootstrap-t intervals, from five images on. Bars of two methods may overlap and the "
        "methods still differ: the tests compare them image by image. The ranks before the names are right for all "
        "methods of the page at once, unless a “beats” on it is wrong. Controls are yardsticks: they are grey, in "
        "<em>italics</em>, and have no rank."
    )
    if reading.page.looks:
        rest += " The run stopped by what it found: intervals are wide enough to hold at every look at once."
    if "relative_importance" in reading.info.protocols:
        rest += (
            " Here single images are drawn again; the section on relative importance draws whole objects and scenes, "
            "which many images share: its wider intervals are the ones to quote."
        )
    if any(reading.is_share(panel) for panel in reading.panels):
        rest += " A share that is 0 or 1 on every image has Wilson’s interval: no resample could differ."
    if any("skewed" in one.table and one.table["skewed"].any() for one in reading.standings.values()):
        rest += (
            " Where the scores of fewer than 200 images are strongly skewed, intervals are somewhat narrow: they hold "
            "the mean in fewer than 95 of 100 cases."
        )
    if any(groups.named("sampled") for groups in reading.run.groups.values()):
        rest += " Images that fall into one sampled group are alike, and intervals allow for it."
    rest += instability(reading)
    several = len(reading.metrics) > 1
    boards = [(f"{model} on {dataset}", scoreboard(reading, dataset, model)) for dataset, model in reading.settings]
    body = unfolding(boards, 2) if several else ""
    if several and len(reading.metrics) <= NARROW:
        body = f'<div class="multiples boards">{"".join(board for _, board in boards)}</div>'
    pieces = [
        (metric, f'<div class="metric">{metric_heading(reading, metric)}{_charts(reading, metric)}</div>')
        for metric in reading.metrics
    ]
    first = reading.main[0]
    lead = (
        f"Mean {escape(first.metric)} over {_caption(reading, first)} with 95&nbsp;% intervals; the number before a "
        "name is its rank, or all the ranks that the tests leave open to it."
    )
    chart = panel_chart(reading, first)
    marks = blind_legend(reading)
    opened = f'<p class="note">{marks.strip()}</p>' if marks else ""
    details = body + unfolding(pieces, SHOWN)
    return section("ranking", "Ranking", lead, details, picture=chart, opened=opened, rest=rest, named=ALL)


def _charts(reading: Reading, metric: str) -> str:
    panels = [panel for panel in reading.panels if panel.metric == metric]
    charts = small_multiples([(_caption(reading, panel), panel_chart(reading, panel)) for panel in panels])
    tables = [(reading.named(panel), numbers(reading, panel)) for panel in panels]
    numbers_html = "".join((f"<h4>{escape(where)}</h4>" if where else "") + table for where, table in tables if table)
    return charts + (fold("The numbers", numbers_html) if numbers_html else "")


def numbers(reading: Reading, panel: Panel) -> str:
    """The chart as a table: for paper, for a reader's voice, and to copy."""
    standing = reading.standings[panel]
    rows = [
        (
            marked(reading, panel, str(row["method"])),
            (str(int(row["n"])), int(row["n"])),
            float(row["mean"]),
            float(row["low"]),
            float(row["high"]),
            (_rank(place) or MISSING, place[0] if place else math.inf),
        )
        for row in standing.table.to_dict("records")
        for place in [standing.ranks.get(str(row["method"]))]
    ]
    head = ("method", "images", "mean", "95 % from", "to", "rank ↓")
    return table(head, rows, control=reading.is_control) if rows else ""


def _caption(reading: Reading, panel: Panel) -> str:
    table = reading.standings[panel].table
    images = int(table["n"].max()) if len(table) else 0
    where = reading.named(panel)
    return f"{where + ' · ' if where else ''}{counted(images, 'image')}"


def panel_chart(reading: Reading, panel: Panel) -> str:
    """The methods of one comparison with their intervals."""
    standing = reading.standings[panel]
    if not len(standing.table):
        return f'<p class="hole">No ranking: {escape(standing.reason)}</p>'
    estimates = []
    for row in standing.table.to_dict("records"):
        method = str(row["method"])
        estimates.append(
            Estimate(
                marked(reading, panel, method),
                float(row["mean"]),
                float(row["low"]),
                float(row["high"]),
                rank=_rank(standing.ranks.get(method)),
                colour=reading.colours.get(method),
                control=reading.is_control(method),
                note=f"{counted(int(row['n']), 'image')}",
            )
        )
    ranked = set(standing.table["method"].astype(str))
    here = reading.scores["metric"] == panel.metric
    here &= (reading.scores["model"] == panel.model) & (reading.scores["dataset"] == panel.dataset)
    met = set(reading.scores.loc[here, "method"].astype(str).unique())
    scored = reading.table(panel).notna().sum()
    estimates += [
        Estimate(
            method,
            math.nan,
            math.nan,
            math.nan,
            control=reading.is_control(method),
            note=f"on {scored[method]} of {len(reading.table(panel))} only" if method in scored else "no score",
        )
        for method in reading.methods
        if method in met - ranked
    ]
    where = reading.named(panel)
    title = f"Ranking by {panel.metric}{', ' + where if where else ''}"
    means = standing.table["mean"]
    crosses = bool((means.min() < 0) & (means.max() > 0))
    return interval_ranking(
        estimates,
        title=title,
        higher_is_better=reading.higher_is_better(panel.metric),
        reference=0.0 if crosses else None,
    )


def _rank(place: tuple[float, float, float] | None) -> str:
    if place is None:
        return ""
    rank, low, high = place
    return f"{rank:g}" if math.isnan(low) or low == high else f"{low:g}–{high:g}"


def scoreboard(reading: Reading, dataset: str, model: str) -> str:
    """Methods that have a score here × metrics: means, shaded by rank among the methods; the columns sort on click."""
    panels = [panel for panel in reading.panels if (panel.dataset, panel.model) == (dataset, model)]
    means = {
        panel: dict(zip(standing.table["method"], standing.table["mean"], strict=True))
        for panel in panels
        for standing in [reading.standings[panel]]
    }
    head = "".join(
        f'<th scope="col" class="num"{lower(not reading.higher_is_better(panel.metric))} '
        f'title="{escape(reading.info.metric(panel.metric).summary)}">'
        f"<button>{breakable(panel.metric)} "
        f"{'↑' if reading.higher_is_better(panel.metric) else '↓'}</button></th>"
        for panel in panels
    )
    rows = []
    for method in (one for one in reading.methods if any(one in scores for scores in means.values())):
        cells = "".join(_cell(reading, panel, method, means[panel].get(method, math.nan)) for panel in panels)
        kind = ' class="control"' if reading.is_control(method) else ""
        rows.append(f'<tr{kind}><th scope="row">{escape(method)}{mark(reading, method)}</th>{cells}</tr>')
    caption = f"Means of {escape(model)} on {escape(dataset)}; deeper shades rank higher among the methods."
    return (
        f'<figure class="wide"><figcaption>{caption}</figcaption><div class="scroll"><table '
        'class="board sortable">'
        f'<thead><tr><th scope="col"><button>method</button></th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody>"
        "</table></div></figure>"
    )


def _cell(reading: Reading, panel: Panel, method: str, mean: float) -> str:
    if math.isnan(mean):
        return f'<td class="num">{MISSING}</td>'
    ranks = reading.standings[panel].ranks
    place = ranks.get(method)
    if place is None or len(ranks) < 2:
        shown = f"{number(mean)}{blind_mark(reading, panel, method)}"
        return f'<td class="num" data-v="{mean:.6g}">{shown}</td>'
    height = 1 - (place[0] - 1) / (len(ranks) - 1)
    first = " first" if place[0] == 1 else ""
    shown = f"{number(mean)}{blind_mark(reading, panel, method)}"
    return f'<td class="num t{round(height * 4)}{first}" data-v="{mean:.6g}">{shown}</td>'
