"""Mosaics: how the ratios spread, whether mosaics and methods agree, and the mosaics themselves."""

from __future__ import annotations

from heatproof.report.charts import Spread, small_multiples, strips
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections import section_of
from heatproof.report.sections.blocks import metric_heading, section, unfolding
from heatproof.report.sections.mosaic_exhibits import exhibits
from heatproof.report.sections.mosaic_reliability import agreements, alphas, correlations
from heatproof.report.sections.premises import apart, rightness
from heatproof.report.typeset import counted, escape, listed
from heatproof.results.protocol_notes import MosaicsNotes
from heatproof.results.run_info import unsigned

PROTOCOL = "mosaics"
SHOWN = 2  # ratios in full; further ones are behind a fold

LEAD = "Half of the tiles of a mosaic show the class that is explained: how much of the relevance is right?"
REST = (
    "Of an odd number of tiles the smaller half shows the class; it is the mosaic’s own, whatever the model says. "
    "Positive relevance on them is right (TP), "
    "on the others wrong (FP); negative relevance is wrong on them (FN) and right on the others (TN). Relevance "
    "is added up, not counted. Precision alone is defined for methods whose maps are never negative; the other "
    "ratios need both signs. Where a ratio has no denominator there is no score, and it is counted as missing."
)


@section_of("mosaics")
def mosaics(reading: Reading) -> str | None:
    """Spreads, reliability and pictures of every data set and model judged by mosaic ratios."""
    panels = mosaic_panels(reading)
    if not any(len(reading.table(panel).columns) for panel in panels):
        return None
    metrics = list(dict.fromkeys(panel.metric for panel in panels))
    spreads = unfolding([(metric, _spreads(reading, metric, panels)) for metric in metrics], SHOWN)
    parts = (
        spreads,
        "".join(apart(reading, panel) for panel in panels if panel.metric == metrics[0] and reading.has(panel)),
        _holes(reading, panels),
        alphas(reading, panels),
        correlations(reading, panels, chance=lambda panel: chance(reading, panel)),
        agreements(reading, panels),
        exhibits(reading, panels, grid_of(reading)),
    )
    first = _charts(reading, metrics[0], panels)[0][1]
    body = "".join(part for part in parts if part)
    opened = rightness(reading, panels, "mosaic")
    return section(PROTOCOL, "Mosaics", LEAD, body, picture=first, opened=opened, rest=REST)


def mosaic_panels(reading: Reading) -> list[Panel]:
    """The panels of this protocol's own metrics."""
    own = {label for label, about in reading.info.metrics.items() if about.name.startswith("mosaic_")}
    return [panel for panel in reading.panels if panel.metric in own]


def grid_of(reading: Reading, dataset: str = "") -> int:
    """Tiles per side, as the run stored it: of a data set with a plan of its own, else of the protocol."""
    noted = (study.noted(MosaicsNotes) for study in reading.info.of_protocol(PROTOCOL))
    return next(noted, MosaicsNotes()).grid_of(dataset)


def chance(reading: Reading, panel: Panel) -> float:
    """What a map of noise scores. Its precision is the share of tiles that show the target: 4 of 9, not half.

    The other ratios but F1 set relevance of one sign against the other on the same tiles, or right against wrong.
    """
    tiles = grid_of(reading, panel.dataset) ** 2
    precision = tiles // 2 / tiles
    name = reading.info.metric(panel.metric).name
    if name == "mosaic_f1":
        return 2 * precision * 0.5 / (precision + 0.5)
    return precision if name == "mosaic_precision" else 0.5


def _spreads(reading: Reading, metric: str, panels: list[Panel]) -> str:
    charts = small_multiples(_charts(reading, metric, panels))
    return f'<div class="metric">{metric_heading(reading, metric)}{charts}</div>'


def _charts(reading: Reading, metric: str, panels: list[Panel]) -> list[tuple[str, str]]:
    charts = []
    tables = {panel: reading.table(panel) for panel in panels if panel.metric == metric}
    within = [float(end) for table in tables.values() for end in (table.min().min(), table.max().max())]
    for panel, table in tables.items():
        if not len(table.columns):
            continue
        rows = [
            Spread(
                method,
                table[method].astype(float).tolist(),
                reading.colours.get(method),
                reading.is_control(method),
            )
            for method in table.columns
        ]
        title = f"{metric} over mosaics, {reading.named(panel)}"
        chart = strips(rows, title=title, reference=chance(reading, panel), within=within)
        charts.append((reading.named(panel) or counted(len(table), "mosaic"), chart))
    return charts


def one_signed(reading: Reading, panels: list[Panel]) -> dict[str, set[str]]:
    """Scored mosaics on which a method has no negative relevance."""
    found: dict[str, set[str]] = {}
    for panel in panels:
        single, scored = reading.detail(panel, "one_sign"), reading.table(panel)
        for method in single.columns.intersection(scored.columns):
            images = single.index[single[method] == 1].intersection(scored[method].dropna().index)
            if len(images):
                found.setdefault(str(method), set()).update(map(str, images))
    return found


def _holes(reading: Reading, panels: list[Panel]) -> str:
    """Undefined ratios and methods to which a ratio does not apply, counted."""
    scores = reading.scores
    here = scores["metric"].isin({panel.metric for panel in panels})
    undefined = scores[here & (scores["status"] == "undefined")]
    words = []
    for metric, part in undefined.groupby("metric", observed=True):
        counts = part["method"].value_counts()
        which = listed([f"{method} ({count})" for method, count in counts.items() if count])
        words.append(f"<li>{escape(metric)} is undefined for {counted(len(part), 'map')}: {escape(which)}</li>")
    magnitudes = unsigned(reading.info, [method for method in reading.methods if not reading.is_control(method)])
    for method, mosaics in one_signed(reading, panels).items():
        words.append(
            f"<li>{counted(len(mosaics), 'mosaic')} on which {escape(method)} has no negative relevance: "
            "recall is 1 there whatever the map shows</li>"
        )
    if magnitudes:
        named = escape(listed(magnitudes))
        words.append(f"<li>Judged by precision only, their maps being never negative: {named}</li>")
    return f"<h3>What could not be judged</h3><ul>{''.join(words)}</ul>" if words else ""
