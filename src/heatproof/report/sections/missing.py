"""What is missing and why: every hole is counted, with its reason."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import section
from heatproof.report.typeset import breakable, count, counted, escape, listed, shortened

ROWS = 60
LITTLE = "says_little"
MEANING = {
    "undefined": "the metric has no value there",
    "not_applicable": "the method or metric does not apply",
    "failed": "an error; the next run tries again",
    "unreadable": "the picture could not be read",
}


def missing(reading: Reading) -> str | None:
    """Tables of reasons with counts: of missing scores, and of scores that are there but say little."""
    scores = reading.scores.assign(note=reading.scores["note"].fillna("").astype(str))
    holes = scores.loc[scores["status"] != "ok"]
    lead, body = "Nothing: every requested score is there.", ""
    if len(holes):
        kinds = holes["status"].value_counts()
        counts = listed(
            [f"<strong>{count(int(times))}</strong> {escape(_plain(kind))}" for kind, times in kinds.items()]
        )
        lead = f"Of {counted(len(scores), 'score')}, {counts}. Nothing missing was counted as zero."
        body = _table(holes)
    doubtful = scores.loc[(scores["status"] == "ok") & (scores["note"] != "")]
    if len(doubtful):
        notes = [shortened(note, 60) for note in doubtful["note"].value_counts().index[:3]]
        lead += (
            f" {counted(len(doubtful), 'score')} that {'is' if len(doubtful) == 1 else 'are'} counted may say little: "
        )
        lead += f"{escape(listed(notes))}."
        body += _table(doubtful.assign(status=LITTLE))
    return section("missing", "What is missing", lead, body, named="Every reason")


def _table(rows: pd.DataFrame) -> str:
    summary = rows.groupby(["status", "note"], observed=True).agg(
        times=("image", "size"),
        methods=("method", lambda names: _some(names, "methods")),
        metrics=("metric", lambda names: _some(names, "metrics")),
        images=("image", lambda names: _some(names, "images", 2)),
    )
    summary = summary.reset_index().sort_values("times", ascending=False, kind="stable")
    lines = "".join(_row(row) for row in summary.head(ROWS).to_dict("records"))
    names = ("kind", "reason", "methods", "metrics", "images")
    head = "".join(f'<th scope="col"><button>{name}</button></th>' for name in names)
    table = (
        '<div class="scroll"><table class="sortable missing"><thead><tr><th scope="col" class="num">'
        f"<button>scores</button></th>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )
    rest = len(summary) - ROWS
    if rest > 0:
        table += f'<p class="note">and {counted(rest, "rarer reason")}, listed in the run’s scores.</p>'
    return table


def _row(row: Mapping[Hashable, Any]) -> str:
    reason = shortened(str(row["note"]), 240) or MEANING.get(str(row["status"]), "")
    return (
        f'<tr><td class="num" data-v="{row["times"]}">{count(int(row["times"]))}</td>'
        f'<td><span class="status s-{escape(row["status"])}">{escape(_plain(row["status"]))}</span></td>'
        f"<td>{escape(reason)}</td><td>{breakable(row['methods'])}</td><td>{breakable(row['metrics'])}</td>"
        f"<td>{breakable(row['images'])}</td></tr>"
    )


def _some(names: pd.Series[Any], noun: str, most: int = 3) -> str:
    """The names, or their number where they are many."""
    met = [str(name) for name in names.unique()]
    return ", ".join(shortened(name, 48) for name in met) if len(met) <= most else f"{count(len(met))} {noun}"


def _plain(status: object) -> str:
    return str(status).replace("_", " ")
