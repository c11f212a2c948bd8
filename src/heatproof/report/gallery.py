"""Images × methods: what the heatmaps look like, all by the same colour rule."""

from __future__ import annotations

import math

from heatproof.report.heat import PERCENTILE, heat_uri, overlay, photo_uri, shown
from heatproof.report.run_numbers import Exhibit, Panel, Reading
from heatproof.report.sections.blocks import fold, section
from heatproof.report.typeset import breakable, counted, escape, listed, number, shortened
from heatproof.results.run_info import unsigned

CELLS = 240  # on a page, at most
BYTES = 1_500_000  # of HTML in the gallery; further rows are left out
IMAGES = 1  # images per data set and model that are drawn without the script; it shows all
ABREAST = 8  # pictures side by side on a wide screen
OPEN = 2  # data sets and models shown unfolded


def gallery(reading: Reading) -> str | None:
    """The kept images of every data set and model, each with the maps of all methods."""
    if not reading.gallery:
        return None
    kept = dict.fromkeys((exhibit.dataset, exhibit.model) for exhibit in reading.gallery)
    settings = sorted(kept, key=lambda one: reading.settings.index(one) if one in reading.settings else len(kept))
    methods = len({method for exhibit in reading.gallery for method in exhibit.maps})
    each = max(1, min(IMAGES, CELLS // max(1, (methods + 1) * len(settings))))
    side = 144 if (methods + 1) * each * len(settings) <= 90 else 112
    body, weight, left_out = "", 0, 0
    for at, (dataset, model) in enumerate(settings):
        here = [one for one in reading.gallery if (one.dataset, one.model) == (dataset, model)]
        rows = ""
        for exhibit in here[:each]:
            row = _row(reading, exhibit, side) if weight < BYTES else ""
            left_out += not row
            weight += len(row)
            rows += row
        left_out += len(here) - len(here[:each])
        name = f"{model} on {dataset}"
        if rows:
            rows = _counted_by(reading, dataset, model) + rows
        if len(settings) > 1 and rows:
            rows = f"<h3>{escape(name)}</h3>{rows}" if at < OPEN else fold(name, rows)
        body += rows
    known = any(exhibit.region is not None for exhibit in reading.gallery)
    opened = '<div id="explorer" hidden></div>'
    lead = (
        "<span class='ramp'></span> One rule for all maps: warm colours are evidence for the class, cold ones against "
        "it, and the picture shows through where there is none."
    )
    rest = (
        "Each map is scaled by the "
        f"{PERCENTILE:g}th percentile of its own magnitudes, so compare where the colours are, not how deep they are."
        + (" The outline marks the region that matters." if known else "")
    )
    magnitudes = unsigned(reading.info, reading.methods)
    if magnitudes:
        some = magnitudes if len(magnitudes) <= 6 else [*magnitudes[:5], f"{len(magnitudes) - 5} others"]
        verb, whose = ("gives", "its") if len(magnitudes) == 1 else ("give", "their")
        rest += f" {escape(listed(some))} {verb} no sign: {whose} warm colours are magnitudes."
    if left_out:
        body += f'<p class="note">{counted(left_out, "further image")} kept by the run, not shown here.</p>'
    return section("gallery", "The heatmaps", lead, body, opened=opened, rest=rest, named="As plain pictures")


def _judge(reading: Reading, dataset: str, model: str) -> Panel | None:
    """The first metric of a data set and model, whose scores stand under its heatmaps."""
    return next((panel for panel in reading.panels if (panel.dataset, panel.model) == (dataset, model)), None)


def _counted_by(reading: Reading, dataset: str, model: str) -> str:
    panel = _judge(reading, dataset, model)
    if panel is None:
        return ""
    better = "higher" if reading.higher_is_better(panel.metric) else "lower"
    return f'<p class="note">Numbers are each map’s {escape(panel.metric)}; {better} is better.</p>'


def _row(reading: Reading, exhibit: Exhibit, side: int) -> str:
    name = escape(shortened(exhibit.image.rsplit("/", 1)[-1], 48))  # folders are usually classes
    original = photo_uri(shown(exhibit.picture, exhibit.region, side))
    cells = [
        f'<figure class="original"><img src="{original}" alt="The image {escape(exhibit.image)}" '
        f'width="{side}">'
        f"<figcaption><b>{breakable(shortened(exhibit.target, 40))}</b><span "
        f'title="{escape(exhibit.image)}">{name}</span>'
        "</figcaption></figure>"
    ]
    scores = _scores(reading, exhibit)
    ordered = [method for method in reading.methods if method in exhibit.maps]
    ordered += [method for method in exhibit.maps if method not in ordered]
    for method in ordered:
        source = heat_uri(overlay(exhibit.picture, exhibit.maps[method], exhibit.region, side))
        kind = ' class="control"' if reading.is_control(method) else ""
        value = scores.get(method, math.nan)
        score = f"<span>{number(value)}</span>" if math.isfinite(value) else ""
        cells.append(
            f'<figure{kind}><img src="{source}" alt="Heatmap of {escape(method)}" width="{side}">'
            f'<figcaption title="{escape(method)}">'
            f"<b>{breakable(shortened(method, 40))}</b>{score}</figcaption></figure>"
        )
    # Rows of equal length: eleven pictures stand as six and five, not as seven and four.
    columns = math.ceil(len(cells) / math.ceil(len(cells) / ABREAST))
    return f'<div class="exhibit" style="--columns:{columns}">{"".join(cells)}</div>'


def _scores(reading: Reading, exhibit: Exhibit) -> dict[str, float]:
    """The image's own scores under the first metric of its data set and model."""
    panel = _judge(reading, exhibit.dataset, exhibit.model)
    if panel is None or exhibit.image not in reading.table(panel).index:
        return {}
    table = reading.table(panel)
    row = table.index.get_loc(exhibit.image)
    return {str(name): float(table[name].to_numpy()[row]) for name in table.columns}
