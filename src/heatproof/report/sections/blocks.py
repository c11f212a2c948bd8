"""The pieces sections are set with: a section, a metric's heading, a fold for what would be too much."""

from __future__ import annotations

from collections.abc import Sequence

from heatproof.report.reading import Reading
from heatproof.report.typeset import breakable, escape


def section(name: str, title: str, lead: str, body: str) -> str:
    """A section with its anchor. `title` is escaped; `lead` and `body` are HTML."""
    opening = f'<p class="lead">{lead}</p>' if lead else ""
    return f'<section id="{escape(name)}"><h2>{escape(title)}</h2>{opening}{body}</section>'


def metric_heading(reading: Reading, metric: str) -> str:
    """The metric's name, its direction and what it means."""
    direction = "higher is better" if reading.higher_is_better(metric) else "lower is better"
    about = reading.about("metrics", metric)
    said = f'<p class="about">{escape(about)}</p>' if about else ""
    return f'<h3>{breakable(metric)} <span class="direction">{direction}</span></h3>{said}'


def fold(summary: str, body: str, *, opened: bool = False) -> str:
    """Something to unfold. `summary` is escaped."""
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{body}</details>"


def unfolding(pieces: Sequence[tuple[str, str]], shown: int) -> str:
    """(name, HTML) pieces: the first `shown` in full, each further one behind a fold of its name."""
    return "".join(body if at < shown else fold(name, body) for at, (name, body) in enumerate(pieces))
