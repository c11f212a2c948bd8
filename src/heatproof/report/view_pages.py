"""The pages of `heatproof view`: the runs of a folder, and two of them side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from heatproof._version import __version__
from heatproof.errors import HeatproofError
from heatproof.report.answers import answers
from heatproof.report.charts import Estimate, interval_ranking
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.answer import matrix, recommendation
from heatproof.report.sections.blocks import fold
from heatproof.report.short_names import Named
from heatproof.report.typeset import breakable, counted, duration, escape, listed
from heatproof.results import Results
from heatproof.results.comparison import Comparison, Place, compare
from heatproof.results.comparison_text import HEADS, rows
from heatproof.stats.two_runs import Move

CHARTED = 16  # cells of a chart; all of them stand in the table


def list_page(root: Path, runs: Mapping[str, Path]) -> str:
    """The runs by name, each with a link to its report, and a form that compares two."""
    lines = "".join(_line(name, path, at) for at, (name, path) in enumerate(runs.items()))
    heads = "".join(
        f'<th scope="col">{word}</th>' for word in ("from", "to", "run", "started", "what", "pictures", "took")
    )
    body = f'<p class="hole">No runs in {escape(root)}: heatproof run --out {escape(root)}/NAME makes one.</p>'
    if runs:
        go = '<p class="bar"><button class="go">Compare the two</button></p>' if len(runs) > 1 else ""
        body = (
            '<form action="/compare" method="get"><div class="scroll"><table class="runs"><thead><tr>'
            f"{heads}</tr></thead><tbody>{lines}</tbody></table></div>{go}</form>"
        )
    lead = f"{counted(len(runs), 'run')} in {escape(root)}. Open one, or choose two and see what moved between them."
    return _page("Runs", f'<h1>Runs</h1><p class="lead">{lead}</p>{body}')


def _line(name: str, path: Path, at: int) -> str:
    try:
        results = Results.load(path)
    except HeatproofError as error:
        return f'<tr><td></td><td></td><td>{escape(name)}</td><td colspan="4">{escape(error)}</td></tr>'
    info = results.info
    models = list(dict.fromkeys(model for _, model in results.settings))
    methods = [name for name in results.scores["method"].unique() if not results.is_control(name)]
    what = f"{listed(models[:3])}: {counted(len(methods), 'method')}, {counted(len(results.metrics), 'metric')}"
    what += f" ({', '.join(info.protocols)})" if info.protocols else ""
    what += f"; stopped {info.stopped}" if info.stopped else ""
    pictures = results.scores[["dataset", "image"]].drop_duplicates()
    radios = "".join(
        f'<td><input type="radio" name="{side}" value="{escape(name)}" aria-label="{escape(name)}, {words}"'
        f"{' checked' if at == mine else ''}></td>"
        for side, words, mine in (("first", "from", 1), ("second", "to", 0))
    )
    return (
        f'<tr>{radios}<th scope="row"><a href="/report/{quote(name)}">{breakable(name)}</a></th>'
        f"<td>{escape(info.started)}</td><td>{escape(what)}</td><td>{len(pictures)}</td>"
        f"<td>{escape('' if info.seconds is None else duration(info.seconds))}</td></tr>"
    )


def compare_page(names: tuple[str, str], runs: tuple[Results, Results]) -> str:
    """What moved between two runs, and their first tables beside each other."""
    found = compare(*runs)
    sentences = "".join(f"<p>{escape(one)}</p>" for one in found.sentences())
    moved = found.moved
    body = f'<div class="sentences">{sentences}</div>'
    if moved:
        body += f"<section><h2>What moved by more than noise</h2>{_chart(found, moved)}{_table(found, moved)}</section>"
    sides = "".join(_side(name, results) for name, results in zip(names, runs, strict=True))
    body += f'<section><h2>Side by side</h2><div class="sides">{sides}</div></section>'
    body += fold(f"All {counted(len(found.moves), 'cell')}", _table(found, found.moves))
    title = f"{escape(names[0])} → {escape(names[1])}"
    return _page("Two runs", f'<p class="bar"><a href="/">All runs</a></p><h1>{title}</h1>{body}')


def _chart(found: Comparison, moved: Sequence[Move[Place]]) -> str:
    """Differences with their intervals, as gains: to the right is better."""
    estimates = []
    for move in moved[:CHARTED]:
        sign = -1.0 if move.key[2] in found.reversed else 1.0
        low, high = sorted((sign * move.low, sign * move.high))
        label = f"{move.key[3]} · {move.key[2]}"
        estimates.append(
            Estimate(label, sign * move.difference, low, high, colour=1 if sign * move.difference < 0 else 5)
        )
    drawn = interval_ranking(estimates, title="What moved, to the right for the better", reference=0.0)
    return f'<figure class="scroll" tabindex="0">{drawn}</figure>'


def _table(found: Comparison, moves: Sequence[Move[Place]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in HEADS)
    lines = "".join(
        f'<tr class="{escape(row[-1].split()[0])}">' + "".join(f"<td>{breakable(cell)}</td>" for cell in row) + "</tr>"
        for row in rows(found, moves)
    )
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _side(name: str, results: Results) -> str:
    reading = Reading(Named(results))
    table = answers(reading)
    link = f'<h3><a href="/report/{quote(name)}">{breakable(name)}</a></h3>'
    if not table.methods:
        return f"<div>{link}<p>No methods were compared.</p></div>"
    return f"<div>{link}<p>{recommendation(reading, table)}</p>{matrix(reading, table)}</div>"


def _page(title: str, body: str) -> str:
    style = "".join(
        (files("heatproof.report") / name).read_text(encoding="utf-8") for name in ("style.css", "view.css")
    )
    footer = f"<footer><p>heatproof {escape(__version__)}, on this machine only.</p></footer>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<link rel="icon" href="data:,"><title>{escape(title)} · heatproof</title><style>{style}</style></head>'
        f"<body><main>{body}{footer}</main></body></html>\n"
    )


def error_page(message: str) -> str:
    """Why a page cannot be shown."""
    return _page("Not found", f'<p class="bar"><a href="/">All runs</a></p><p class="warning">{escape(message)}</p>')
