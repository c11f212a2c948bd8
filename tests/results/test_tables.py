"""Tables for papers say what the results say, in every format."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from invented_run import with_info
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.errors import BadInput, UnknownName
from heatproof.report.run_numbers import Reading
from heatproof.results import Results, tables
from heatproof.results.run_info import run_info
from heatproof.stats.bootstrap import interval
from heatproof.stats.groups import Groups
from heatproof.stats.mean_interval import mean_intervals
from heatproof.stats.significance import compare_pairs

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
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info))


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
    alone = with_info(results(), methods=dict.fromkeys(("random", "good", "bad|"), CONTROL))
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
    message = shell.invoke(app, ["table", str(tmp_path), "--format", "csv"])
    assert message.exit_code == 0, message.output
    assert set(pd.read_csv(io.StringIO(message.stdout))["method"]) == {"edges", "centre", "random"}
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


def close(seed: int = 0, cards: int = 1, groups: Groups | None = None) -> Results:
    """Four methods of which the middle ones are hard to tell apart."""
    rng = np.random.default_rng(seed)
    levels = {"a": 1.6, "b": 0.8, "c": 0.6, "d": 0.0}
    rows = [
        {"dataset": "d", "model": "m", "method": method, "metric": f"s{card}", "image": f"{i}", "value": mean + noise}
        | {"status": "ok", "note": "", "seconds": 0.1}
        for card in range(cards)
        for method, mean in levels.items()
        for i, noise in enumerate(rng.normal(0, 1, 60))
    ]
    info = {"metrics": {f"s{card}": {"higher_is_better": True} for card in range(cards)}}
    return Results(
        pd.DataFrame(rows), pd.DataFrame(), None, run_info(info), groups={} if groups is None else {"d": groups}
    )


@pytest.mark.parametrize("seed", range(5))
def test_ranks_tests_and_sentences_are_one_truth(seed: int) -> None:
    run = close(seed)
    ranks = tables.rankings(run).set_index("method")
    pairs = tables.pairs(run)
    message = " ".join(Reading(run).verdict(Reading(run).panels[0]))
    for method in "abcd":
        mine = pairs[(pairs["method_a"] == method) | (pairs["method_b"] == method)]
        beaten_by = ((mine["winner"] != "") & (mine["winner"] != method)).sum()
        beats = (mine["winner"] == method).sum()
        assert (ranks.loc[method, "rank_low"], ranks.loc[method, "rank_high"]) == (1 + beaten_by, 4 - beats)
    for row in pairs.to_dict("records"):
        assert (row["winner"] != "") == (row["p_adjusted"] <= 0.05) == (row["low"] > 0 or row["high"] < 0)
    assert ("beat" in message) == (pairs["winner"] != "").any()
    open_rank = ranks.index[ranks["rank_low"] < ranks["rank_high"]][0]
    latex = tables.written(tables.rankings(run), "latex")
    low, high = ranks.loc[open_rank, ["rank_low", "rank_high"]]
    assert any(line.startswith(f"{open_rank} &") and f"{low:g}--{high:g}" in line for line in latex.splitlines())


def test_a_page_allows_for_all_its_cards() -> None:
    one, many = tables.pairs(close()), tables.pairs(close(cards=12))
    same = many[many["metric"] == "s0"].reset_index(drop=True)
    np.testing.assert_allclose(same["p"], one["p"])
    assert (same["p_adjusted"] >= one["p_adjusted"]).all()
    assert (same["p_adjusted"] > one["p_adjusted"]).any()


def test_groups_reach_tests_intervals_and_words() -> None:
    labels = pd.DataFrame({"site": np.arange(60) % 3}, index=[f"{i}" for i in range(60)])
    run = close(groups=Groups(labels, {"site": "sampled"}))
    assert (tables.pairs(run)["winner"] == "").all()
    assert tables.rankings(run)["low"].isna().all()
    assert set(tables.rankings(run)["rank_high"]) == {4}
    reading = Reading(run)
    assert "With 3 sites no two methods can be separated" in reading.verdict(reading.panels[0])[0]
    fixed = close(groups=Groups(labels, {"site": "fixed"}))
    found = tables.pairs(fixed)
    assert set(found.loc[found["winner"] != "", "beyond"]) == {"too few groups"}


def test_signed_ranks_are_there_by_name() -> None:
    run = close()
    found = tables.pairs(run, test="signed_ranks")
    assert {"rank_biserial", "p_holm"} <= set(found.columns)
    wanted = compare_pairs(run.table("s0")).frame
    np.testing.assert_allclose(found["p_holm"], wanted["p_holm"])
    with pytest.raises(UnknownName, match="signed_ranks"):
        tables.pairs(run, test="signed_rank")


def test_methods_that_do_not_beat_every_blind_control_are_marked_in_words_and_not_in_numbers() -> None:
    run = with_info(results(), methods={"random": {**CONTROL, "blind": True}})
    for frame in (tables.rankings(run), tables.pairs(run)):
        assert "‡" not in tables.written(frame, "md")
    values = run.scores["method"] == "random"
    run = Results(
        run.scores.assign(value=run.scores["value"].where(~values, run.scores["value"] + 0.5)), None, None, run.info
    )
    for frame in (tables.rankings(run), tables.pairs(run)):
        text = tables.written(frame, "md")
        assert "| bad\\|‡ |" in text
        assert "| good |" in text
        assert "‡ a blind control beats it" in text
        latex = tables.written(frame, "latex")
        assert r"bad\textbar{}$^{\ddagger}$" in latex
        assert r"{\footnotesize $^{\ddagger}$ a blind control beats it" in latex
        assert "‡" not in tables.written(frame, "csv")
    ranked = tables.rankings(run).set_index("method")["against_blind"]
    assert ranked.to_dict() == {"good": "clear", "random": "control", "bad|": "beaten"}
