"""Tables for papers say what the results say, in every format."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from heatproof import tables
from heatproof.cli import app
from heatproof.errors import BadInput
from heatproof.results import Results
from heatproof.stats.bootstrap import interval
from heatproof.stats.mean_interval import mean_intervals

CONTROL = {"control": True}


def results(models: int = 1) -> Results:
    rng = np.random.default_rng(0)
    rows = [
        {"dataset": "d", "model": f"m_{k}", "method": method, "metric": "srg", "image": f"{i}", "value": mean + noise}
        | {"status": "ok", "note": "", "seconds": 0.1}
        for k in range(models)
        for method, mean in {"good": 0.9, "bad|": 0.1, "random": 0.0}.items()
        for i, noise in enumerate(rng.normal(0, 0.01, 12))
    ]
    info = {"metrics": {"srg": {"higher_is_better": True}}, "methods": {"random": CONTROL}}
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, info)


def test_models_are_never_pooled() -> None:
    with pytest.raises(BadInput, match=r"2 pairs of model and data set.*model='m_0', dataset='d'"):
        results(2).ranking("srg")
    with pytest.raises(BadInput, match="2 pairs of model and data set"):
        results(2).pairs("srg")
    assert results(2).ranking("srg", model="m_1").table["n"].tolist() == [12, 12, 12]
    assert len(tables.rankings(results(2))) == 6


def test_a_control_has_no_rank_and_takes_none() -> None:
    table = results().ranking("srg").table.set_index("method")
    assert table["rank"].dropna().to_dict() == {"good": 1, "bad|": 2}
    assert table["control"].to_dict() == {"good": False, "bad|": False, "random": True}
    alone = results()
    alone.info["methods"] |= {"good": CONTROL, "bad|": CONTROL}
    assert list(alone.ranking("srg")) == ["good", "bad|", "random"]
    assert alone.ranking("srg").table["rank"].isna().all()


def test_intervals_are_those_that_fit_few_images() -> None:
    run = results()
    scores = run.scores[run.scores["method"] == "good"]["value"].to_numpy()
    row = run.ranking("srg").table.set_index("method").loc["good"]
    wanted = mean_intervals(pd.DataFrame({"good": scores})).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx((wanted["low"], wanted["high"]))
    assert wanted["low"] < interval(scores).low


def test_csv_holds_the_numbers_themselves() -> None:
    found = tables.rankings(results())
    read = pd.read_csv(io.StringIO(tables.written(found, "csv")))
    pd.testing.assert_frame_equal(read, found, check_dtype=False)


def test_markdown_and_latex_show_intervals_and_escape() -> None:
    found = tables.rankings(results())
    text = tables.written(found, "md")
    assert "**srg: m_0 on d**" in text
    row = next(line for line in text.splitlines() if line.startswith("| good"))
    low, high = found.loc[found["method"] == "good", ["low", "high"]].iloc[0]
    assert row.endswith(f"[{low:.3f}, {high:.3f}] | 1 |")
    assert "| bad\\| |" in text
    latex = tables.written(found, "latex")
    assert r"\caption{srg: m\_0 on d}" in latex
    assert latex.count(r" \\") == 4


def test_pairs_name_a_winner_only_where_there_is_one() -> None:
    run = results()
    run.scores.loc[run.scores["method"] == "bad|", "value"] = run.scores.loc[
        run.scores["method"] == "random", "value"
    ].to_numpy()
    found = tables.pairs(run).set_index(["method_a", "method_b"])
    assert sorted(found["winner"]) == ["", "good", "good"]
    run.scores.loc[(run.scores["method"] == "bad|") & (run.scores["image"] == "3"), "value"] += 0.1
    assert sorted(tables.pairs(run)["winner"]) == ["", "good", "good"]  # ahead on one image only
    assert found.loc[("bad|", "random"), "p_adjusted"] == 1


def test_the_command_writes_what_a_run_found(tmp_path: Path) -> None:
    words = ["run", "--metrics", "pointing_game", "--methods", "edges,centre,random", "--limit", "6", "--quiet"]
    shell = CliRunner()
    assert shell.invoke(app, [*words, "--out", str(tmp_path)]).exit_code == 0
    told = shell.invoke(app, ["table", str(tmp_path), "--format", "csv"])
    assert told.exit_code == 0, told.output
    assert set(pd.read_csv(io.StringIO(told.stdout))["method"]) == {"edges", "centre", "random"}
    assert shell.invoke(app, ["table", str(tmp_path), "--pairs"]).stdout.count("\n| ") == 5
    wrong = shell.invoke(app, ["table", str(tmp_path), "--metric", "srgg"])
    assert wrong.exit_code == 2
    assert "pointing_game" in wrong.output


def test_small_scores_keep_their_digits() -> None:
    run = results()
    run.scores["value"] *= 1e-5
    text = tables.written(tables.rankings(run), "md")
    row = next(line for line in text.splitlines() if line.startswith("| good"))
    assert "0.00000900" in row
