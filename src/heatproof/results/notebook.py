"""What notebooks show of results: small HTML tables of methods with their means, intervals and standing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from heatproof.printable import printable
from heatproof.results.best_groups import Block, Cell, best_groups, decimals
from heatproof.results.method_names import short_names
from heatproof.stats.against_blind import MARKS, legend

if TYPE_CHECKING:
    from heatproof.results.ranking import Ranking
    from heatproof.results.results import Results

BEST = "\N{BLACK STAR}"  # before a cell of the best group; not shown
STYLE = "text-align:right;padding:.15em .7em;white-space:nowrap"


def ranking_html(ranking: Ranking) -> str:
    """One row per method: its rank, its mean and interval, and its standing against blind controls."""
    names = short_names(ranking.table["method"])
    digits = decimals(list(ranking.table["mean"]))
    rows = [
        [
            names[row["method"]] + MARKS.get(row["against_blind"], ""),
            "" if math.isnan(row["rank"]) else _ranks(row["rank_low"], row["rank_high"]),
            f"{row['mean']:.{digits}f}",
            f"[{row['low']:.{digits}f}, {row['high']:.{digits}f}]",
            str(row["n"]),
        ]
        for _, row in ranking.table.iterrows()
    ]
    arrow = "↑" if ranking.higher_is_better else "↓"
    note = legend(set(ranking.table["against_blind"]))
    return _table(["method", "rank", f"{ranking.metric} {arrow}", "95 %", "n"], rows, note)


def results_html(results: Results) -> str:
    """Methods × main metrics: means, the best group by the adjusted tests in bold."""
    found = best_groups(results)
    heads = ["method", *(f"{column.metric} {column.arrow}" for column in found.columns)]
    return "".join(_block(block, heads, found.metrics) for block in found.blocks)


def _block(block: Block, heads: Sequence[str], metrics: Sequence[str]) -> str:
    names = short_names(block.cells)
    digits = {
        metric: decimals([row[metric].mean for row in block.cells.values() if metric in row]) for metric in metrics
    }
    rows = [
        [names[method], *(_cell(row.get(metric), digits[metric]) for metric in metrics)]
        for method, row in block.cells.items()
    ]
    standings = {cell.against_blind for row in block.cells.values() for cell in row.values()}
    title = f"{block.model} on {block.dataset}: bold is the best group by the adjusted tests"
    return f"<p>{_text(title)}</p>{_table(heads, rows, legend(standings), bold=BEST)}"


def _cell(cell: Cell | None, digits: int) -> str:
    if cell is None:
        return "–"
    return f"{BEST if cell.best else ''}{cell.mean:.{digits}f}{MARKS.get(cell.against_blind, '')}"


def _ranks(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"


def _text(words: str) -> str:
    return escape(printable(words))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], note: str = "", bold: str = "") -> str:
    """A table in HTML; a cell that begins with `bold` is bold."""

    def cell(words: str, place: int, tag: str) -> str:
        style = STYLE.replace("right", "left") if place == 0 else STYLE
        strong = bool(bold) and words.startswith(bold)
        inner = _text(words.removeprefix(bold)) if strong else _text(words)
        return f'<{tag} style="{style}">{f"<b>{inner}</b>" if strong else inner}</{tag}>'

    lines = [[cell(words, place, "td") for place, words in enumerate(row)] for row in rows]
    head = "".join(cell(words, place, "th") for place, words in enumerate(heads))
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    below = f"<p>{_text(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
