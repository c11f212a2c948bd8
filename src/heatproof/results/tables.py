"""A run's results as tables: rankings with intervals, and the tests of all pairs; CSV, Markdown, LaTeX, JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import pandas as pd

from heatproof.errors import BadInput, HeatproofError, UnknownName
from heatproof.printable import printable
from heatproof.results import Results
from heatproof.results.latex import escaped
from heatproof.stats.against_blind import MARKS, legend

Format = Literal["csv", "md", "latex", "json"]
TESTS = ("means", "signed_ranks")
PLACE = ("dataset", "model", "metric")


def rankings(results: Results, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """One row per data set, model, metric and method, best first; controls have no rank."""
    return _gathered(results, metrics, lambda metric, where: results.ranking(metric, **where).table)


def pairs(results: Results, metrics: Sequence[str] = (), test: str = "means") -> pd.DataFrame:
    """One row per data set, model, metric and pair of methods: difference, effect, p, and p for the whole page.

    `low` and `high` hold at once for all pairs of the page. `test` may also be `signed_ranks`, Wilcoxon's, whose p_holm
    is adjusted for one table.
    """
    if test not in TESTS:
        raise UnknownName.among("test", test, TESTS)

    def found(metric: str, where: dict[str, str]) -> pd.DataFrame:
        if test == "signed_ranks":
            frame = results.signed_ranks(metric, **where).frame
            frame = frame.rename(columns={"mean_low": "low", "mean_high": "high"})
            chosen = ["rank_biserial", "p", "p_holm"]
        else:
            frame = results.pairs(metric, **where).frame
            chosen = ["effect", "p", "p_adjusted", *(["beyond"] if (frame["beyond"] != "").any() else [])]
        frame = frame.assign(winner=frame["winner"].where(frame["significant"], ""))  # being ahead is not winning
        met = results.ranking(metric, **where).table
        standing = dict(zip(met["method"], met["against_blind"], strict=True))
        for side in ("a", "b"):
            frame[f"against_blind_{side}"] = [standing.get(method, "unknown") for method in frame[f"method_{side}"]]
        marks = ["against_blind_a", "against_blind_b"]
        return frame[["method_a", "method_b", "n", "mean_difference", "low", "high", *chosen, "winner", *marks]]

    return _gathered(results, metrics, found)


def luck(results: Results, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """One row per data set, model, metric and random method: how far its scores depend on the seed.

    `spread` is the standard deviation over pictures, `luck` that over seeds on one picture (`low` and `high`: its 95 %
    interval), `mean_moves` how far the mean over all pictures moves from one seed to another.
    """

    def found(metric: str, where: dict[str, str]) -> pd.DataFrame:
        some = results.luck(metric, **where)
        if not some:
            raise BadInput("no random method was repeated under other seeds")
        return pd.DataFrame([{**dataclasses.asdict(one), "mean_moves": one.moves} for one in some])

    return _gathered(results, metrics, found)


def _gathered(
    results: Results, metrics: Sequence[str], found: Callable[[str, dict[str, str]], pd.DataFrame]
) -> pd.DataFrame:
    parts: list[pd.DataFrame] = []
    reasons: list[str] = []
    for metric in metrics or results.metrics:
        rows = results.rows(metric)
        for dataset, model in rows[["dataset", "model"]].drop_duplicates().itertuples(index=False):
            try:
                table = found(metric, {"dataset": dataset, "model": model})
            except HeatproofError as error:  # nothing to rank there; the other panels may have rankings
                reasons.append(f"{metric} ({model} on {dataset}): {error}")
                continue
            parts.append(table.assign(dataset=dataset, model=model, metric=metric))
    if not parts:
        raise BadInput(f"there is nothing for a table: {'; '.join(reasons)}")
    whole = pd.concat(parts, ignore_index=True)
    return whole[[*PLACE, *(name for name in whole.columns if name not in PLACE)]]


def written(table: pd.DataFrame, form: Format) -> str:
    """The table as text; Markdown and LaTeX have one table per data set, model and metric, JSON a list of rows."""
    if form == "json":
        return json.dumps([_plain(row) for row in table.to_dict("records")], indent=1, ensure_ascii=False) + "\n"
    if form == "csv":
        return table.map(_csv_cell).to_csv(index=False)
    return "\n".join(_markdown(*part) if form == "md" else _latex(*part) for part in _panels(table))


def _plain(row: dict[Any, Any]) -> dict[str, Any]:
    """A row in JSON's own types: what is not a number is null."""
    return {str(name): None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def _panels(table: pd.DataFrame) -> Iterator[tuple[str, list[str], list[list[str]], str]]:
    """(title, heads, rows of words, legend) of each data set, model and metric."""
    for (dataset, model, metric), part in table.groupby(list(PLACE), sort=False, observed=True):
        marked, below = _with_marks(part.drop(columns=list(PLACE)))
        shown = _with_intervals(marked)
        rows = [[_word(value) for value in row] for row in shown.itertuples(index=False)]
        yield f"{metric}: {model} on {dataset}", [str(name).replace("_", " ") for name in shown.columns], rows, below


def _with_marks(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Methods that do not beat every blind control carry a mark, which the legend explains."""
    columns = {"method": "against_blind", "method_a": "against_blind_a", "method_b": "against_blind_b"}
    here = {name: standing for name, standing in columns.items() if standing in table}
    met = [one for standing in here.values() for one in table[standing]]
    marks = {
        name: [f"{one}{MARKS.get(which, '')}" for one, which in zip(table[name], table[standing], strict=True)]
        for name, standing in here.items()
    }
    return table.assign(**marks).drop(columns=list(here.values())), legend(met)


def _with_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Intervals beside their estimate: `0.640 [0.583, 0.701]`, and ranks as `2–4`."""
    middle = next(name for name in ("luck", "mean", "mean_difference") if name in table)
    largest = float(table[middle].abs().max())
    decimals = 3 if not 0 < largest < 0.1 else 2 - math.floor(math.log10(largest))  # three digits of the largest
    cells = [
        f"{mean:.{decimals}f}" if math.isnan(low) else f"{mean:.{decimals}f} [{low:.{decimals}f}, {high:.{decimals}f}]"
        for mean, low, high in zip(table[middle], table["low"], table["high"], strict=True)
    ]
    shown = table.assign(**{middle: cells}).drop(columns=["low", "high"])
    if "rank" not in shown:
        return shown
    places = zip(table["rank"], table["rank_low"], table["rank_high"], strict=True)
    shown["rank"] = [
        "" if math.isnan(rank) else f"{rank:g}" if math.isnan(low) or low == high else f"{low:g}–{high:g}"
        for rank, low, high in places
    ]
    return shown.drop(columns=["rank_low", "rank_high", "control", "skewed"])


def _word(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if math.isnan(value) else f"{value:.3f}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"


def _csv_cell(value: Any) -> Any:
    """Numbers as they are; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    if not isinstance(value, str):
        return value
    return printable(f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value)


def _markdown(title: str, heads: list[str], rows: list[list[str]], below: str = "") -> str:
    lines = [heads, ["---"] * len(heads), *([_in_markdown(cell) for cell in row] for row in rows)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    note = f"\n{_in_markdown(below)}\n" if below else ""
    return f"**{_in_markdown(title)}**\n\n{body}\n{note}"


def _in_markdown(text: str) -> str:
    """One line, with HTML, code, links and emphasis escaped; an underscore within a word needs no escape."""
    line = printable(" ".join(text.split("\n")), keep="")
    line = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", re.sub(r"([\\`*~|]|\](?=[(\[:]))", r"\\\1", line))
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _latex(title: str, heads: list[str], rows: list[list[str]], below: str = "") -> str:
    """With the rules of the package booktabs."""
    body = "\n".join(" & ".join(escaped(cell) for cell in row) + r" \\" for row in rows)
    columns = "l" * len(heads)
    note = f"\\par\\smallskip{{\\footnotesize {escaped(below)}}}\n" if below else ""
    return (
        f"\\begin{{table}}\n\\caption{{{escaped(title)}}}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n"
        f"{' & '.join(escaped(head) for head in heads)} \\\\\n\\midrule\n{body}\n\\bottomrule\n"
        f"\\end{{tabular}}\n{note}\\end{{table}}\n"
    )
