"""LaTeX: one table in the shape of a paper's, and the escaping that every table needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from heatproof.printable import printable
from heatproof.results.best_groups import BestGroups, Block, Cell, Column, best_groups, decimals, hidden
from heatproof.results.method_names import short_names
from heatproof.results.results import Results
from heatproof.stats.against_blind import MARKS, legend

WITH_INTERVALS = 3  # columns up to which intervals stand beside the means
MOST = 7  # columns side by side; further ones follow below

_LETTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "–": "--",
    "…": r"\ldots{}",
    "×": r"$\times$",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "‡": r"$^{\ddagger}$",
    "°": r"$^{\circ}$",
    "\N{MINUS SIGN}": "$-$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def escaped(text: str) -> str:
    """One line, with special characters escaped; a leading `[` or `*` would be an argument of the row before."""
    line = printable(" ".join(text.split("\n")), keep="")
    return ("{}" if line.startswith(("[", "*")) else "") + "".join(_LETTERS.get(letter, letter) for letter in line)


def paper_table(results: Results, metrics: Sequence[str] = ()) -> str:
    """Methods × metrics with arrows, the best group under each metric in bold, and a caption on what it rests on.

    A method is in the best group where no other method beats it by the adjusted tests of the whole run; where they
    separate no two methods, none is bold. It needs the package booktabs.
    """
    found = best_groups(results, metrics)
    names = short_names([method for block in found.blocks for method in block.cells])
    parts = [found.columns[at : at + MOST] for at in range(0, len(found.columns), MOST)]
    body = "\n\\medskip\n\n".join(_tabular(found, columns, names) for columns in parts)
    note = legend(
        {cell.against_blind for block in found.blocks for row in block.cells.values() for cell in row.values()}
    )
    below = f"\\par\\smallskip{{\\footnotesize {escaped(note)}}}\n" if note else ""
    kind = "table*" if len(found.columns) > WITH_INTERVALS else "table"
    head = f"% needs \\usepackage{{booktabs}}\n\\begin{{{kind}}}\n\\centering\n"
    return f"{head}\\caption{{{escaped(caption(results, found))}}}\n{body}\n{below}\\end{{{kind}}}\n"


def caption(results: Results, found: BestGroups) -> str:
    """What was judged on what, with how many pictures, what was hidden, and by which tests the best are bold."""
    where = "; ".join(f"{block.model} on {block.dataset}, {_count(block)}" for block in found.blocks)
    intervals = " with 95 % intervals" if len(found.columns) <= WITH_INTERVALS else ""
    hides = hidden(results.info.metrics, found.metrics)
    sentences = [
        f"Attribution methods judged on {where}.",
        f"Means{intervals}; ↑: higher is better, ↓: lower is better.",
        "Bold: the best group, which no other method beats by paired bootstrap-t tests of the mean difference, "
        f"adjusted over all {found.pairs} pair{'' if found.pairs == 1 else 's'} of the run (max-T, family-wise error "
        f"at most {100 * found.alpha:g} %).",
    ]
    if results.page.looks:
        sentences.append(
            f"The run stopped by what it found, after {results.page.looks} looks, which the tests allow for."
        )
    none = [
        column.metric for column in found.columns if not any(block.separated(column.metric) for block in found.blocks)
    ]
    if none:
        sentences.append(f"No two methods are separated under {', '.join(none)}.")
    for words, some in hides.items():
        sentences.append(f"{'All metrics hide' if len(some) == len(found.columns) else ', '.join(some) + ':'} {words}.")
    if any(block.controls for block in found.blocks):
        sentences.append("In italics: controls, which take no part in the ranking.")
    if results.info.stopped:
        sentences.append(f"The run was stopped {results.info.stopped}.")
    return " ".join(sentences)


def _count(block: Block) -> str:
    least, most = block.pictures
    return f"n = {most} pictures" if least == most else f"n = {least} to {most} pictures"


def _tabular(found: BestGroups, columns: Sequence[Column], names: Mapping[str, str]) -> str:
    several = len(found.blocks) > 1
    heads = " & ".join(["method", *(f"{escaped(column.metric)} {escaped(column.arrow)}" for column in columns)])
    lines = [f"\\begin{{tabular}}{{l{'c' * len(columns)}}}", "\\toprule", f"{heads} \\\\", "\\midrule"]
    shown = len(found.columns) <= WITH_INTERVALS
    for at, block in enumerate(found.blocks):
        if several:
            title = escaped(f"{block.model} on {block.dataset}")
            lines += ["\\midrule"] * bool(at)
            lines.append(f"\\multicolumn{{{len(columns) + 1}}}{{l}}{{\\emph{{{title}}}}} \\\\")
        lines += _rows(block, columns, names, shown)
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _rows(block: Block, columns: Sequence[Column], names: Mapping[str, str], intervals: bool) -> Iterator[str]:
    digits = {
        column.metric: decimals([row[column.metric].mean for row in block.cells.values() if column.metric in row])
        for column in columns
    }
    for at, (method, row) in enumerate(block.cells.items()):
        control = method in block.controls
        if control and at and list(block.cells)[at - 1] not in block.controls:
            yield "\\addlinespace"
        name = escaped(names[method])
        cells = [_cell(row.get(column.metric), digits[column.metric], intervals) for column in columns]
        yield " & ".join([f"\\textit{{{name}}}" if control else name, *cells]) + " \\\\"


def _cell(cell: Cell | None, digits: int, intervals: bool) -> str:
    if cell is None:
        return "--"
    mean = _number(cell.mean, digits)
    text = f"\\textbf{{{mean}}}" if cell.best else mean
    mark = escaped(MARKS.get(cell.against_blind, ""))  # type: ignore[call-overload]
    if not intervals or math.isnan(cell.low):
        return text + mark
    return f"{text}{mark} {{\\scriptsize [{_number(cell.low, digits)}, {_number(cell.high, digits)}]}}"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "$-$")
