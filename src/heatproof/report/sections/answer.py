"""The first screen: which method to use, a matrix of methods and questions, the leaders' maps, advice, limits."""

from __future__ import annotations

from collections.abc import Sequence

from heatproof.report.answers import Answers, Cell, answers
from heatproof.report.heat import heat_uri, overlay, photo_uri, shown
from heatproof.report.questions import Question
from heatproof.report.run_numbers import Exhibit, Reading
from heatproof.report.sections.advice import advice, limits
from heatproof.report.sections.blocks import fold
from heatproof.report.sections.pictures import doubts
from heatproof.report.typeset import breakable, counted, escape, listed, shortened
from heatproof.stats.marks import MARKS, Mark

ROWS = 12  # methods in the table; further ones are behind a fold
LEADERS = 3  # whose heatmaps stand beside each other
SIDE = 160
SIGN: dict[Mark, str] = {"best": "★", "good": "●", "behind": "◐", "open": "○", "beaten": "✕"}
WORDS: dict[Mark, str] = {
    "best": "clearly best",
    "good": "good: no method beats it",
    "behind": "behind: some method beats it",
    "open": "not separable",
    "beaten": "beaten by a blind map",
}
MEANING: dict[Mark, str] = {
    "best": "beats every other method and every blind map",
    "good": "beats every blind map, and no method beats it; where pictures are redrawn: beats some method",
    "behind": "beats every blind map, but some method beats it",
    "open": "these pictures do not tell it from a blind map, or from any method",
    "beaten": "a map that looks at nothing scores better",
}
NOTE = (
    '<p class="note" id="cell-note" aria-live="polite">By the adjusted tests of this page. A fraction says in how many '
    "comparisons the mark is reached, a star or cross beside it in how many it is that; choose a cell to see them.</p>"
)


def answer(reading: Reading) -> str | None:
    """Nothing for runs without any comparison of methods."""
    if not reading.panels:
        return None
    found = answers(reading)
    if not found.methods:
        return None
    items = "".join(f"<li>{sentence}</li>" for sentence in advice(reading, found))
    lacking, doubt = limits(reading), careful(reading)
    tail = f'<p class="limits">{lacking}</p>' if lacking else ""
    warning = f'<p class="careful">{doubt}</p>' if doubt else ""
    return (
        '<section id="answer"><h2>Which method should I use?</h2>'
        f'<p class="lead">{recommendation(reading, found)}</p>{warning}<div class="overview">'
        f"<div>{matrix(reading, found)}{NOTE}</div><div>{_leaders(reading, found)}"
        f'<ul class="advice">{items}</ul>{tail}</div></div></section>'
    )


def careful(reading: Reading) -> str:
    """The gravest reason to be careful with the whole page, and a link to the others, as HTML."""
    found = doubts(reading)
    if not found:
        return ""
    more = len(found) - 1
    link = f' <a href="#pictures">{counted(more, "more reason")} to be careful</a>' if more else ""
    return f"<strong>Careful:</strong> {escape(found[0])}{link}"


def recommendation(reading: Reading, found: Answers) -> str:
    """The sentence to take away, as HTML: a method is recommended if it holds in half of the questions."""
    count = len(found.questions)
    held = max((found.holding(method) for method in found.methods), default=0)
    if not held:
        return "None of these methods is shown to be better than a map that looks at nothing: add pictures."
    leaders = [method for method in found.leaders if found.holding(method) == found.holding(found.leaders[0])]
    if not leaders:
        best = next(method for method in found.methods if found.holding(method) == held)
        return (
            f"No method is without a fault here: <strong>{escape(best)}</strong> holds in {held} of "
            f"{counted(count, 'question')}, and somewhere a map that looks at nothing beats it."
        )
    it = "it" if len(leaders) == 1 else "them"
    share = _share(found, leaders)
    if 2 * found.holding(leaders[0]) < found.applying(leaders[0]):
        return (
            f"No method stands out on these pictures. Nothing beats {_any_of(leaders, 'and')} {share}; "
            "beyond that more pictures would have to tell."
        )
    return f"Start with {_any_of(leaders, 'or')}: nothing beats {it} {share}, and no blind map beats {it} anywhere."


def _share(found: Answers, leaders: Sequence[str]) -> str:
    """In how many questions nothing beats the leaders, all of which hold in as many."""
    held, count = found.holding(leaders[0]), len(found.questions)
    if count == 1:
        return "in the one question asked"
    share = f"in {held} of {counted(count, 'question')}"
    if len(leaders) == 1:
        return share if held == count else f"{share} ({_others(found, leaders[0])})"
    same = len({found.held(method) for method in leaders}) == 1
    return share if same else f"{share} each, not the same ones"


def _others(found: Answers, method: str) -> str:
    """What came of the questions in which it does not hold that nothing beats the method."""
    marks = [None if (cell := found.cell(method, one).found) is None else cell.mark for one in found.questions]
    behind, level, none = marks.count("behind"), marks.count("open"), marks.count(None)
    parts = [f"some method does in {behind}"] if behind else []
    parts += [f"{level} {'is' if level == 1 else 'are'} open"] if level else []
    parts += [f"{none} {'does' if none == 1 else 'do'} not apply"] if none else []
    return ", ".join(parts)


def _any_of(methods: Sequence[str], joint: str) -> str:
    """Names in bold, further ones counted: `a, b, c or one of 2 others`."""
    names = [f"<strong>{escape(one)}</strong>" for one in methods[:LEADERS]]
    if further := len(methods) - len(names):
        names.append("another" if further == 1 else f"{'one of ' * (joint == 'or')}{further} others")
    return listed(names, joint)


def matrix(reading: Reading, found: Answers) -> str:
    """Methods × questions. Every cell is a button that explains itself, and has its words for a reader's voice."""
    table = _table(reading, found, found.methods[:ROWS])
    if rest := found.methods[ROWS:]:
        table += fold(counted(len(rest), "further method"), _table(reading, found, rest))
    used = [mark for mark in MARKS if any(one.found and one.found.mark == mark for one in found.cells.values())]
    legend = "".join(
        f'<li title="{MEANING[mark]}"><span class="m-{mark}" aria-hidden="true">{SIGN[mark]}</span> {WORDS[mark]}</li>'
        for mark in used
    )
    if any(one.found is None for one in found.cells.values()):
        legend += '<li><span class="m-none">n/a</span> not applicable</li>'
    return f'{table}<ul class="legend">{legend}</ul>'


def _table(reading: Reading, found: Answers, methods: Sequence[str]) -> str:
    heads = "".join(f'<th scope="col">{escape(one.words)}</th>' for one in found.questions)
    rows = "".join(
        f'<tr data-method="{escape(method)}"><th scope="row" title="{escape(_whole(reading, method))}">'
        f"{breakable(shortened(method, 34))}</th>"
        + "".join(_cell(reading, found.cell(method, one), method, one) for one in found.questions)
        + "</tr>"
        for method in methods
    )
    return (
        f'<div class="scroll"><table class="answers"><thead><tr><th scope="col">method</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _whole(reading: Reading, method: str) -> str:
    return reading.info.method(method).label or method


def _cell(reading: Reading, cell: Cell, method: str, question: Question) -> str:
    if cell.found is None:
        why = "; ".join(cell.reasons) or "no metric of this question was run"
        note = f"{method} · {question.words} Not applicable: {why}"
        return (
            f'<td class="m-none"><button type="button" data-note="{escape(note)}" title="{escape(why)}">n/a'
            "</button></td>"
        )
    mark = cell.found.mark
    each = "; ".join(
        f"{panel.metric}{f' ({where})' if (where := reading.named(panel)) else ''}: {WORDS[one]}"
        for panel, one in cell.marks.items()
    )
    share = "" if cell.found.unanimous else f"<small>{cell.found.reached}/{cell.found.of}</small>"
    best = sum(one == "best" for one in cell.marks.values())
    beside = f'<small class="m-best">★{best}</small>' if best and mark != "best" else ""
    beside += f'<small class="m-beaten">✕{cell.beaten}</small>' if cell.beaten and mark != "beaten" else ""
    spoken = WORDS[mark] + ("" if cell.found.unanimous else f" in {cell.found.reached} of {cell.found.of} comparisons")
    spoken += f"; clearly best in {best}" if best and mark != "best" else ""
    spoken += f"; beaten by a blind map in {cell.beaten}" if cell.beaten and mark != "beaten" else ""
    note = f"{method} · {question.words} {each}" + (f"; not judged: {'; '.join(cell.reasons)}" if cell.reasons else "")
    return (
        f'<td class="m-{mark}"><button type="button" data-note="{escape(note)}" title="{escape(each)}">'
        f'<span aria-hidden="true">{SIGN[mark]}</span>{share}{beside}<span class="voice">{spoken}</span></button></td>'
    )


def _leaders(reading: Reading, found: Answers) -> str:
    """A picture and what the first methods say of it."""
    shown_methods = [*found.leaders, *(one for one in found.methods if one not in found.leaders)]
    for exhibit in reading.gallery:
        chosen = [method for method in shown_methods if method in exhibit.maps][:LEADERS]
        if chosen:
            return _strip(exhibit, chosen)
    return ""


def _strip(exhibit: Exhibit, methods: list[str]) -> str:
    tiles = [
        f'<figure><img src="{photo_uri(shown(exhibit.picture, exhibit.region, SIDE))}" width="{SIDE}" '
        f'alt="The image {escape(exhibit.image)}"><figcaption>{escape(shortened(exhibit.target, 20))}</figcaption>'
        "</figure>"
    ]
    for method in methods:
        source = heat_uri(overlay(exhibit.picture, exhibit.maps[method], exhibit.region, SIDE))
        tiles.append(
            f'<figure data-method="{escape(method)}"><img src="{source}" width="{SIDE}" '
            f'alt="Heatmap of {escape(method)}">'
            f"<figcaption>{breakable(shortened(method, 20))}</figcaption></figure>"
        )
    return f'<div class="strip">{"".join(tiles)}</div>'
