"""Text from files cannot steer where it goes: a terminal, a spreadsheet, Markdown, LaTeX or HTML."""

from __future__ import annotations

import csv
import dataclasses
import errno
import html.parser
import io
import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from invented_run import invent
from typer.testing import CliRunner

from heatproof import contact_sheet
from heatproof.cli import _terminal, app
from heatproof.errors import BadInput, HeatproofError
from heatproof.printable import printable
from heatproof.report import report
from heatproof.results import Results, tables
from heatproof.results.run_info import run_info

HOSTILE = "a\x1b[2J\r\n\u202e|`<b>&[x](y)=\u2028\u0000_é"


@given(st.text(st.characters()))
def test_nothing_that_is_printed_steers_a_terminal(text):
    shown = printable(text, keep="")
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    shown.encode("utf-8")
    if text.isprintable():
        assert shown == text


def test_what_is_hidden_is_written_out():
    assert printable("a\x1b[31m\u202eb\udc80\r\n\tc") == "a\\x1b[31m\\u202eb\\udc80\\r\n\tc"
    assert printable("1\N{NARROW NO-BREAK SPACE}000 – naïve 図") == "1\N{NARROW NO-BREAK SPACE}000 – naïve 図"


def test_errors_and_names_are_shown_and_not_obeyed(capsys, tmp_path):
    with pytest.raises(typer.Exit) as stop, _terminal.readable_errors():
        raise BadInput("no \x1b]0;title\x07 here")
    assert stop.value.exit_code == 2
    assert "\x1b" not in (shown := capsys.readouterr().err)
    assert "\\x1b]0;title\\x07" in shown
    message = CliRunner().invoke(app, ["table", str(tmp_path / "\x1b[31mgone")])
    assert message.exit_code == 2
    assert "\x1b" not in message.output
    assert "\\x1b[31mgone" in message.output


def test_the_progress_bar_takes_no_markup(monkeypatch):
    monkeypatch.setattr(sys, "stderr", shown := _Terminal())
    with _terminal.progress_bar(False) as watch:
        watch(1, 2, "[blink]x[/nothing] \x1b]0;t\x07")
    assert "[blink]x[/nothing]" in shown.getvalue()
    assert "\x1b]0;t" not in shown.getvalue()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ranked(method: str) -> pd.DataFrame:
    rows = [
        {"dataset": "d", "model": "m", "method": name, "metric": "srg", "image": str(i), "value": value - i / 100}
        | {"status": "ok", "note": "", "seconds": 0.1}
        for name, value in {method: -0.5, "other": 0.1}.items()
        for i in range(8)
    ]
    info = {"metrics": {"srg": {"higher_is_better": True}}}
    return tables.rankings(Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info)))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_spreadsheet_takes_no_label_for_a_formula(start):
    label = f'{start}HYPERLINK("http://x")'
    read = list(csv.DictReader(io.StringIO(tables.written(ranked(label), "csv"))))
    found = next(row for row in read if "HYPERLINK" in row["method"])
    assert found["method"] == "'" + printable(label)
    assert float(found["mean"]) < 0  # a number keeps its sign
    assert found["mean"].startswith("-")


def test_markdown_stays_one_table():
    text = tables.written(ranked(HOSTILE), "md")
    lines = text.strip().splitlines()
    assert len(lines) == 6  # title, empty, heads, rule, two methods
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:]}) == 1
    row = next(line for line in lines if line.startswith("| a"))
    assert "<b>" not in row
    assert not re.search(r"(?<!\\)`|(?<!\\)\]\(", row)


def test_latex_stays_one_table():
    text = tables.written(ranked("[1]\n\\input{x}%$#~^_{}<>|−…" + HOSTILE), "latex")
    assert text.count(r" \\" + "\n") == 3
    row = next(line for line in text.splitlines() if "input" in line)
    assert row.startswith("{}[1] ")  # else an argument of the row's end before it
    assert r"\textbackslash{}input\{x\}\%\$\#\textasciitilde{}\textasciicircum{}\_\{\}" in row
    assert r"\textless{}\textgreater{}\textbar{}$-$\ldots{}" in row
    assert "\x1b" not in text


class _Elements(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(name for name, _ in attrs)}


def test_the_page_shows_hostile_labels_and_obeys_none(tmp_path):
    run = invent(["m"], [f"{i}.png" for i in range(8)])
    plain = report(run, tmp_path / "plain.html").read_text()
    evil = "<img src=x onerror=alert(1)>\"'\u2028\u202e\x00\n</script><svg onload=a>"
    names = {name: f"{evil}{i}" for i, name in enumerate(run.scores["method"].unique())}
    for frame in (run.scores, run.curves):
        if "method" in frame:
            frame["method"] = frame["method"].map(names)
    methods = {names.get(name, name): about for name, about in run.info.methods.items()}
    info = dataclasses.replace(run.info, methods=methods)
    run.scores["note"] = evil
    run = dataclasses.replace(run, info=info)  # what was computed of the plain names is forgotten
    text = report(run, tmp_path / "evil.html").read_text()
    before, after = _Elements(), _Elements()
    before.feed(plain)
    after.feed(text)
    assert "onerror" not in after.seen
    assert "onload" not in after.seen
    assert not re.search("[\u2028\u202e\x00]", text)
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES])
def test_no_room_for_the_page_is_a_sentence(monkeypatch, tmp_path, number):
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HeatproofError, match=r"no space left|cannot be written"):
        report(invent(["m"], [f"{i}.png" for i in range(8)]), tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []  # no half of a page, no leftovers
    sheet = contact_sheet.Sheet(("a.png",), np.zeros((1, 4, 4, 3), np.uint8), ("cat",), {}, {})
    with pytest.raises(HeatproofError, match=r"no space left|cannot be written"):
        contact_sheet.write(sheet, tmp_path / "maps.png")


def test_a_full_disk_elsewhere_is_a_sentence_too(capsys):
    with pytest.raises(typer.Exit) as stop, _terminal.readable_errors():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert stop.value.exit_code == 2
    assert "the disk takes no more" in capsys.readouterr().err


def test_every_command_prints_through_one_door():
    for file in Path(_terminal.__file__).parent.glob("*.py"):
        if file.name != "_terminal.py":
            assert not re.search(
                r"typer\.echo|(?<!\.)\bprint\(|click\.echo|secho", file.read_text().replace(").print(", "")
            ), file
