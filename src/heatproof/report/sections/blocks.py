"""Building blocks of sections: a section, a metric's heading, a fold, a sortable table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from heatproof.report.run_numbers import Reading
from heatproof.report.typeset import MISSING, breakable, escape, number


def section(
    name: str,
    title: str,
    lead: str,
    body: str,
    *,
    picture: str = "",
    opened: str = "",
    rest: str = "",
    named: str = "Details",
) -> str:
    """A section with its anchor: one sentence and a picture; the `rest` of the text and the body are folded.

    `title` and `named`, the fold's name, are escaped; all others are HTML. What is `opened` stands before the fold.
    """
    opening = f'<p class="lead">{lead}</p>' if lead else ""
    frame = f'<div class="picture" tabindex="0" role="group" aria-label="{escape(title)}">'
    drawn = f"{frame}{picture}</div>" if picture else ""
    more = f'<p class="about">{rest}</p>' * bool(rest) + body
    folded = fold(named, more, class_="more") if more else ""
    return f'<section id="{escape(name)}"><h2>{escape(title)}</h2>{opening}{drawn}{opened}{folded}</section>'


def metric_heading(reading: Reading, metric: str) -> str:
    """The metric's name, its direction and what it means."""
    direction = "higher is better" if reading.higher_is_better(metric) else "lower is better"
    about = reading.info.metric(metric)
    hides = f" Hides {about.hides}." if about.hides else ""
    gloss = f'<p class="about">{escape(about.summary + hides)}</p>' if about.summary or hides else ""
    return f'<h3>{breakable(metric)} <span class="direction">{direction}</span></h3>{gloss}'


def fold(summary: str, body: str, *, opened: bool = False, class_: str = "") -> str:
    """A collapsible block. `summary` is escaped."""
    kind = f' class="{escape(class_)}"' if class_ else ""
    return f"<details{kind}{' open' if opened else ''}><summary>{escape(summary)}</summary>{body}</details>"


def unfolding(pieces: Sequence[tuple[str, str]], shown: int) -> str:
    """(name, HTML) pieces: the first `shown` in full, each further one behind a fold of its name."""
    return "".join(body if at < shown else fold(name, body) for at, (name, body) in enumerate(pieces))


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    words: int = 1,
    control: Callable[[str], bool] = lambda name: False,
) -> str:
    """A table whose columns sort it; the first `words` columns are words, the others numbers or aligned like numbers.

    A pair is the text shown and the number to sort by. Rows whose first cell is a `control` are greyed; a head
    that ends in ↓ says that lower is better. Everything is escaped; NaN is missing.
    """
    top = "".join(
        f'<th scope="col"{_aligned(at >= words)}{lower(name.endswith("↓"))}><button>{escape(name)}</button></th>'
        for at, name in enumerate(head)
    )
    body = "".join(
        ('<tr class="control">' if control(str(first)) else "<tr>")
        + f'<th scope="row">{breakable(str(first))}</th>'
        + "".join(_cell(value, at >= words) for at, value in enumerate(rest, 1))
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def lower(better: bool) -> str:
    """The mark of a column whose lower end is the better one: sorting starts there."""
    return " data-lower" if better else ""


def _cell(value: str | float | tuple[str, float], right: bool) -> str:
    if isinstance(value, tuple):
        return f'<td class="num" data-v="{value[1]:.6g}">{escape(value[0])}</td>'
    if isinstance(value, str):
        return f"<td{_aligned(right)}>{escape(value) if right else breakable(value)}</td>"
    if value != value:
        return f'<td class="num">{MISSING}</td>'
    return f'<td class="num" data-v="{value:.6g}">{number(value)}</td>'


def _aligned(right: bool) -> str:
    return ' class="num"' if right else ""
