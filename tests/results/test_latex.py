"""LaTeX for a paper: bold follows the adjusted tests, the caption says what it rests on, and every row is whole."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.results import Results, tables
from heatproof.results.best_groups import best_groups
from heatproof.results.latex import escaped, paper_table
from heatproof.results.run_info import run_info

LEVELS = {"a_1": 1.6, "b&": 1.5, "c(steps=5)": 0.6, "d": 0.0}


def drawn(metrics: int = 2, models: int = 1, spread: float = 0.3, **about: object) -> Results:
    """Four methods of which the first two are alike, and a control."""
    rng = np.random.default_rng(0)
    rows = [
        {"dataset": "d", "model": f"m{at}", "method": method, "metric": f"s{card}", "image": f"{i}"}
        | {"value": (level + noise) * (-1 if card else 1), "status": "ok", "note": "", "seconds": 0.1}
        for card in range(metrics)
        for at in range(models)
        for method, level in {**LEVELS, "random": -0.3}.items()
        for i, noise in enumerate(rng.normal(0, spread, 40))
    ]
    info = {
        "metrics": {f"s{card}": {"higher_is_better": card == 0, **about} for card in range(metrics)},
        "methods": {"random": {"control": True, "blind": True}},
    }
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info))


def rows_of(latex: str) -> list[list[str]]:
    """The cells of every row between the rules."""
    body = re.findall(r"\\midrule\n(.*?)\\bottomrule", latex, re.S)
    return [
        re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for part in body for line in part.splitlines() if "&" in line
    ]


def whole(latex: str) -> bool:
    """Whether braces and environments close in order."""
    depth = 0
    for letter in re.sub(r"\\[{}]", "", latex):
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            return False
    open_ones: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", latex):
        if kind == "begin":
            open_ones.append(name)
        elif not open_ones or open_ones.pop() != name:
            return False
    return depth == 0 and not open_ones


def test_bold_is_the_group_that_no_method_beats() -> None:
    run = drawn()
    latex = paper_table(run)
    assert whole(latex)
    bold = {row[0] for row in rows_of(latex) if "textbf" in row[1]}
    beaten = {worse for _, worse in run.page.tests["s0", "d", "m0"].beats()}
    assert bold == {escaped(name) for name in ("a_1", "b&", "c")} - {escaped(n.partition("(")[0]) for n in beaten}
    assert bold == {r"a\_1", r"b\&"}
    assert [row[0] for row in rows_of(latex)][-1] == r"\textit{random}"
    assert r"s0 $\uparrow$ & s1 $\downarrow$ \\" in latex


def test_every_row_has_a_cell_for_every_metric() -> None:
    for metrics, models in ((1, 1), (3, 2), (9, 1)):
        latex = paper_table(drawn(metrics, models))
        assert whole(latex)
        for body in latex.split("\\begin{tabular}")[1:]:
            columns = body[1 : body.index("}")]
            assert {len(row) for row in rows_of("\\begin{tabular}" + body)} == {len(columns)}
        assert latex.count("\\begin{table") == 1
    assert "scriptsize" in paper_table(drawn(3))
    assert "scriptsize" not in paper_table(drawn(4))


def test_nothing_is_bold_where_nothing_is_separated() -> None:
    latex = paper_table(drawn(1, spread=50.0))
    assert "textbf" not in latex
    assert "No two methods are separated under s0." in latex


def test_the_caption_names_occlusion_numbers_and_tests() -> None:
    latex = paper_table(drawn(hides="25 rectangles, filled with ImageNet's mean colour"))
    caption = next(line for line in latex.splitlines() if line.startswith("\\caption"))
    for words in (
        "m0 on d, n = 40 pictures",
        "All metrics hide 25 rectangles",
        "max-T",
        "over all 12 pairs",
        "In italics",
    ):
        assert words in caption
    one = drawn()
    info = replace(one.info, metrics={**one.info.metrics, "s0": replace(one.info.metrics["s0"], hides="single pixels")})
    assert "s0: single pixels." in paper_table(Results(one.scores, None, None, info))


def test_wins_and_losses_are_those_of_the_tests() -> None:
    run = drawn()
    block = best_groups(run).blocks[0]
    beats = run.page.tests["s0", "d", "m0"].beats()
    for method in block.contestants:
        cell = block.cells[method]["s0"]
        assert cell.wins == sum(a == method and b in LEVELS for a, b in beats)
        assert cell.losses == sum(b == method and a in LEVELS for a, b in beats)


@settings(max_examples=60)
@given(st.text(max_size=30))
def test_any_name_is_one_escaped_cell(name: str) -> None:
    shown = escaped(name)
    assert whole(shown)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)[&%#]", shown)


def test_json_holds_the_numbers_themselves() -> None:
    found = tables.rankings(drawn())
    read = json.loads(tables.written(found, "json"))
    assert [row["mean"] for row in read] == found["mean"].tolist()
    assert [row["rank"] for row in read] == [None if math.isnan(rank) else rank for rank in found["rank"]]
    assert isinstance(read[0]["control"], bool)


@pytest.fixture(scope="module")
def run_with_one_metric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    words = ["run", "--metrics", "pointing_game", "--methods", "edges,centre,random", "--limit", "6", "--quiet"]
    assert CliRunner().invoke(app, [*words, "--out", str(out)]).exit_code == 0
    return out


def test_the_command_writes_both_forms(run_with_one_metric: Path) -> None:
    shell = CliRunner()
    answer = shell.invoke(app, ["table", str(run_with_one_metric), "--format", "json"])
    assert {row["method"] for row in json.loads(answer.stdout)} == {"edges", "centre", "random"}
    assert whole(shell.invoke(app, ["table", str(run_with_one_metric), "-f", "latex"]).stdout)
    pairs = json.loads(shell.invoke(app, ["table", str(run_with_one_metric), "-f", "json", "--pairs"]).stdout)
    assert len(pairs) == 3
