"""The page: masthead, contents, sections, footer. One file: nothing fetched, only its own script run."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from heatproof._version import __version__
from heatproof.report.explorer import BYTES, explorer_data
from heatproof.report.gallery import gallery
from heatproof.report.run_numbers import Reading
from heatproof.report.sections import Section, protocol_sections
from heatproof.report.sections.answer import answer
from heatproof.report.sections.curves import curves
from heatproof.report.sections.descriptions import descriptions
from heatproof.report.sections.disagreement import disagreement
from heatproof.report.sections.luck import luck
from heatproof.report.sections.missing import missing
from heatproof.report.sections.pictures import pictures
from heatproof.report.sections.provenance import provenance
from heatproof.report.sections.ranking import ranking
from heatproof.report.sections.significance import significance
from heatproof.report.sections.stopping import stopping
from heatproof.report.sections.verdict import verdict
from heatproof.report.typeset import counted, escape, listed, shortened

# The mark: three bars of heat, one of which holds. Drawn here so that the page needs no picture of it.
MARK = (
    '<svg class="mark" viewBox="0 0 28 28" aria-hidden="true"><rect x="2" y="12" width="6" '
    'height="14" rx="2"/>'
    '<rect x="11" y="2" width="6" height="24" rx="2" class="holds"/><rect x="20" y="16" '
    'width="6" height="10" rx="2"/>'
    "</svg>"
)


WEIGHT = 2_900_000  # bytes of a page, unless what must stand on it is more
LEAST_DATA = 400_000  # of these, for the pictures that can be asked


def sections_of(reading: Reading) -> list[Section]:
    """All sections in the order of the page; those of the run's protocols stand after the curves."""
    known = protocol_sections()
    own = [known[name] for name in reading.info.protocols if name in known]
    return [
        answer,
        gallery,
        verdict,
        stopping,
        ranking,
        significance,
        luck,
        curves,
        *own,
        descriptions,
        pictures,
        disagreement,
        missing,
        provenance,
    ]


def page(reading: Reading) -> str:
    """The whole document."""
    drawn = [html for section in sections_of(reading) if (html := section(reading)) is not None]
    style = _resource("style.css")
    script = _resource("sort.js") + _resource("explorer.js")
    # Only this very script may run, and nothing may be fetched: whatever a file name contains stays text.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta name="generator" content="heatproof {escape(__version__)}"><link rel="icon" href="data:,">'
        f"<title>Which heatmaps hold up? · heatproof</title><style>{style}</style></head>\n<body>"
        f"{_contents(drawn)}{_masthead(reading)}<main>{''.join(drawn)}</main>"
        f"{_footer(reading)}{_data(reading, sum(map(len, drawn)))}<script>{script}</script></body></html>\n"
    )


def _data(reading: Reading, weight: int) -> str:
    """What the script reads, less of it on a page of such weight; a block of data is never run."""
    data = explorer_data(reading, max(LEAST_DATA, min(BYTES, WEIGHT - weight)))
    return f'<script type="application/json" id="data">{data}</script>' if data else ""


def _resource(name: str) -> str:
    return (files("heatproof.report") / name).read_text(encoding="utf-8")


def _masthead(reading: Reading) -> str:
    contestants = [method for method in reading.methods if not reading.is_control(method)]
    controls = len(reading.methods) - len(contestants)
    datasets = list(dict.fromkeys(dataset for dataset, _ in reading.settings))
    models = list(dict.fromkeys(model for _, model in reading.settings))
    images = int(reading.scores[["dataset", "image"]].drop_duplicates().shape[0])
    against = f" and {counted(controls, 'control')}" if controls else ""
    standfirst = (
        f"{counted(len(contestants), 'attribution method')}{against}, judged by "
        f"{_some(reading.metrics, 'metrics')} "
        f"on {counted(images, 'image')} of {_some(datasets, 'data sets')}, explaining "
        f"{_some(models, 'models')}."
    )
    if stopped := reading.info.stopped:
        standfirst += f" <strong>The run was stopped {escape(stopped)}.</strong>"
    return f'<header class="masthead"><h1>Which heatmaps hold up?</h1><p class="standfirst">{standfirst}</p></header>'


def _some(names: list[str], noun: str) -> str:
    if len(names) > 4:
        return f"{len(names)} {noun}"
    return listed([f"<b>{escape(shortened(name, 60))}</b>" for name in names])


def _contents(drawn: list[str]) -> str:
    """The contents: links to the sections that were drawn, from their own headings."""
    heads = [re.match(r'<section id="([^"]+)"[^>]*><h2>(.*?)</h2>', html) for html in drawn]
    items = "".join(f'<li><a href="#{head[1]}">{head[2]}</a></li>' for head in heads if head)
    return f'<nav aria-label="Contents"><span class="brand">{MARK}heatproof</span><ol>{items}</ol></nav>'


def _footer(reading: Reading) -> str:
    started = reading.info.started
    when = f" Run of {escape(started)}." if started else ""
    return (
        f"<footer><p>Drawn by heatproof {escape(__version__)} from the run’s own files.{when} This "
        "page is complete in "
        "itself: it fetches nothing.</p></footer>"
    )
