"""Which differences are more than noise: every method against every other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from heatproof.errors import HeatproofError
from heatproof.report.charts import critical_difference as diagram
from heatproof.report.charts import heatmap, small_multiples
from heatproof.report.charts.heatmap import SMALL, short
from heatproof.report.run_numbers import ALPHA, Panel, Reading
from heatproof.report.sections.blind_marks import blind_legend, marked
from heatproof.report.sections.blocks import fold, metric_heading, section, table, unfolding
from heatproof.report.typeset import MINUS, MISSING, counted, escape, number, probability
from heatproof.stats.page import PairTests, plural
from heatproof.stats.significance import CriticalDifference, critical_difference

SHOWN = 4  # metrics in full; further ones are behind a fold
BYTES = 1_200_000  # of matrices on a page: beyond, they would outweigh everything else
LISTED = 400_000  # bytes of their tables: of forty methods, two or three


def significance(reading: Reading) -> str | None:
    """A matrix per comparison, with Demšar's diagram of mean ranks where it can be drawn."""
    panels = [panel for panel in reading.panels if reading.pairs(panel) is not None]
    pieces, weight, more = [], 0, 0
    listing, unlisted = 0, 0
    for metric in reading.metrics:
        figures: list[tuple[str, str]] = []
        tables: list[str] = []
        for panel in panels:
            if panel.metric != metric:
                continue
            made = _figures(reading, panel) if weight < BYTES else []
            weight += sum(len(chart) for _, chart in made)
            more += not made
            figures += made
            if made and listing < LISTED:
                tables.append(pair_table(reading, panel))
                listing += len(tables[-1])
            else:
                unlisted += bool(made)
        if figures:
            drawn = small_multiples(figures) + "".join(tables)
            pieces.append((metric, f'<div class="metric">{metric_heading(reading, metric)}{drawn}</div>'))
    if not pieces:
        return None
    lead = (
        "Read a row: <span class='swatch hp4'></span> it beats the method of the column, "
        "<span class='swatch hn4'></span> it loses to it, <span class='swatch hz'></span> these "
        "images cannot tell."
    )
    rest = (
        "Numbers are effect sizes: the mean paired difference in standard deviations of the differences, shown where "
        f"the adjusted p is at most {ALPHA:g}. Pairs with a control are adjusted by themselves, so that yardsticks "
        f"cost the methods nothing. {escape(reading.page.sentence)}{blind_legend(reading)}"
    )
    notes = [f"{counted(more, 'further matrix', 'further matrices')} not drawn."] * bool(more)
    notes += [f"{counted(unlisted, 'further table')} of pairs not written out."] * bool(unlisted)
    note = f'<p class="note">{" ".join(notes)}</p>' if notes else ""
    first = next((panel for panel in reading.main if panel in panels), panels[0])
    tests = reading.pairs(first)
    drawing = "" if tests is None else matrix(reading, first, tests)
    lead += f" Here by {escape(first.metric)}{_of(reading, first)}."
    body = unfolding(pieces, SHOWN) + note
    return section(
        "significance", "What is solid, what is noise", lead, body, picture=drawing, rest=rest, named="Every comparison"
    )


def _of(reading: Reading, panel: Panel) -> str:
    where = reading.named(panel)
    return f", {escape(where)}" if where else ""


def _figures(reading: Reading, panel: Panel) -> list[tuple[str, str]]:
    tests = reading.pairs(panel)
    if tests is None:
        return []
    where = reading.named(panel)
    prefix = f"{where} · " if where else ""
    caption = prefix + "; ".join(
        f"{int(rows['significant'].sum())} of {counted(len(rows), 'pair')} {which}differ solidly"
        for which, rows in (
            ("", tests.frame.loc[tests.frame["controls"] == 0]),
            ("with a control ", tests.frame.loc[tests.frame["controls"] == 1]),
        )
        if len(rows)
    )
    figures = [(caption, matrix(reading, panel, tests))]
    units = reading.clusters(panel.dataset, reading.contenders(panel).index)
    found = _critical(reading, panel, units)
    if found is not None and len(found.methods) <= 20:
        doubt = "" if found.rejected else "; these images cannot show that any two differ (Friedman's test)"
        title = f"Mean ranks by {panel.metric}{', ' + where if where else ''}"
        drawing = diagram(
            dict(zip(found.methods, found.mean_ranks, strict=True)),
            found.critical_difference,
            title=title,
            colours=reading.colours,
            groups=found.groups,
        )
        unit = next(iter(units), "image")
        words = (
            f"{prefix}mean rank per {unit}; bars join what Nemenyi's test cannot separate{doubt}. It looks at ranks "
            f"alone, so on few {plural(unit)} it may find other pairs than the matrix"
        )
        figures.append((words, drawing))
    return figures


def _critical(reading: Reading, panel: Panel, units: Mapping[str, NDArray[np.int64]]) -> CriticalDifference | None:
    if len(units) > 1:  # two crossed kinds: no rows that are independent
        return None
    try:
        return critical_difference(
            reading.contenders(panel),
            higher_is_better=reading.higher_is_better(panel.metric),
            alpha=reading.page.level,
            clusters=next(iter(units.values()), None),
        )
    except HeatproofError:
        return None


def matrix(reading: Reading, panel: Panel, tests: PairTests) -> str:
    """Rows against columns in the order of the ranking: the effect where significant, else a dot."""
    order = _order(reading, panel, tests)
    at = {method: index for index, method in enumerate(order)}
    values = np.full((len(order), len(order)), np.nan)
    texts = [["" for _ in order] for _ in order]
    notes = [["" for _ in order] for _ in order]
    sign = 1 if reading.higher_is_better(panel.metric) else -1
    for row in tests.frame.to_dict("records"):
        a, b = str(row["method_a"]), str(row["method_b"])
        i, j = at[a], at[b]
        effect = sign * float(row["effect"]) if row["significant"] else 0.0
        values[i, j], values[j, i] = effect, -effect
        if len(order) > SMALL:
            continue
        for x, y, first, second, flip in ((i, j, a, b, 1), (j, i, b, a, -1)):
            texts[x][y] = _effect(flip * effect) if row["significant"] else "·"
            difference = flip * float(row["mean_difference"])
            ends = sorted((flip * float(row["low"]), flip * float(row["high"])))
            notes[x][y] = (
                f"{first} − {second}: mean difference {number(difference)} "
                f"[{number(ends[0])}, {number(ends[1])}], adjusted p {probability(float(row['p_adjusted']))}, "
                f"n {row['n']}"
            )
    where = reading.named(panel)
    title = f"Pairwise comparison by {panel.metric}{', ' + where if where else ''}"
    # Neutral means that these images cannot tell: the weakest effect that they can has a shade.
    names = [marked(reading, panel, method) for method in order]
    return heatmap(values, names, names, title=title, least=1, texts=texts, notes=notes)


def _effect(value: float) -> str:
    """As fits a cell: two decimals, none from ten on."""
    return short(value) if abs(value) < 9.995 else f"{MINUS if value < 0 else ''}{abs(value):.0f}"


def _worth(images: float) -> str | tuple[str, float]:
    """A number of independent images; none where there is no test."""
    return (f"{images:.0f}", images) if images == images else MISSING


def _order(reading: Reading, panel: Panel, tests: PairTests) -> list[str]:
    ranked = [str(method) for method in reading.standings[panel].table["method"] if method in tests.methods]
    return [*ranked, *(method for method in tests.methods if method not in ranked)]


def pair_table(reading: Reading, panel: Panel) -> str:
    """The numbers behind the matrix, for readers who cannot hover: every pair, the one that ranks higher first."""
    tests = reading.pairs(panel)
    if tests is None:
        return ""
    order = {method: at for at, method in enumerate(_order(reading, panel, tests))}
    sign = 1 if reading.higher_is_better(panel.metric) else -1
    grouped = bool(tests.basis.sampled)
    rows = []
    for row in tests.frame.sort_values("controls", kind="stable").to_dict("records"):
        a, b = str(row["method_a"]), str(row["method_b"])
        flip = 1 if order[a] < order[b] else -1
        first, second = (a, b)[::flip]
        rows.append(
            (
                (int(row["controls"]), order[first], order[second]),
                [
                    marked(reading, panel, first),
                    marked(reading, panel, second),
                    flip * float(row["mean_difference"]),
                    _effect(flip * sign * float(row["effect"])),
                    (probability(float(row["p_adjusted"])), float(row["p_adjusted"])),
                    str(row["n"]),
                    *([_worth(float(row["n_effective"]))] if grouped else []),
                ],
            )
        )
    head = ["method", "against", "mean difference", "effect", "adjusted p ↓", "images"]
    head += ["worth"] if grouped else []
    where = reading.named(panel)
    summary = f"{where + ' · ' if where else ''}{counted(len(rows), 'pair')} in numbers"
    note = (
        "The mean difference is the method less the one it is set against. The effect is that difference in standard "
        "deviations of the paired differences; above 0 the method is the better one."
    )
    if grouped:
        note += " Images of one group are alike: what they are worth is the number of independent ones."
    return fold(
        summary,
        f'<p class="note">{note}</p>{table(head, [cells for _, cells in sorted(rows)], words=2)}',
        class_="pairs",
    )
