"""The heatmaps of the same pictures under two models: the object should be hot for one of them only."""

from __future__ import annotations

from heatproof.report.heat import heat_uri, overlay, photo_uri, shown
from heatproof.report.run_numbers import Exhibit, Reading
from heatproof.report.typeset import breakable, escape, shortened
from heatproof.results.protocol_notes import RelativeImportanceNotes

SIDE = 112
PICTURES = 2


def paired_maps(reading: Reading, notes: list[RelativeImportanceNotes]) -> str:
    """The first pictures that the gallery has under both models, a row for each."""
    roles = next((one.roles for one in notes if {"object", "scene"} <= set(one.roles)), None)
    if roles is None:
        return ""
    kept = {(one.model, one.dataset, one.image): one for one in reading.gallery}
    body = ""
    pairs = 0
    for (model, dataset, image), one in kept.items():
        other = kept.get((roles["scene"], dataset, image))
        if model == roles["object"] and other is not None and pairs < PICTURES:
            pairs += 1
            both = [method for method in reading.methods if method in one.maps and method in other.maps]
            body += _row(reading, one, both) + _row(reading, other, both)
    if not body:
        return ""
    return (
        "<h3>The same picture under both models</h3><p>The outlined object matters to the object model (first row) and "
        f"not to the scene model (second row).</p>{body}"
    )


def _row(reading: Reading, exhibit: Exhibit, methods: list[str]) -> str:
    original = photo_uri(shown(exhibit.picture, exhibit.region, SIDE))
    cells = [
        f'<figure class="original"><img src="{original}" alt="The image {escape(exhibit.image)}" width="{SIDE}">'
        f"<figcaption><b>{breakable(shortened(exhibit.target, 40))}</b><span>{escape(exhibit.model)}</span>"
        "</figcaption></figure>"
    ]
    for method in methods:
        if reading.is_control(method):
            continue
        source = heat_uri(overlay(exhibit.picture, exhibit.maps[method], exhibit.region, SIDE))
        cells.append(
            f'<figure><img src="{source}" alt="Heatmap of {escape(method)}" width="{SIDE}">'
            f'<figcaption title="{escape(method)}"><b>{breakable(shortened(method, 40))}</b></figcaption></figure>'
        )
    return f'<div class="exhibit" style="--columns:{len(cells)}">{"".join(cells)}</div>'
