"""The command line as a person meets it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from heatproof.cli import app

KINDS = ["methods", "metrics", "imputers", "segmenters", "protocols", "datasets", "models"]
FACTORY = """
from torch import nn
import torch

def factory():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 5))

factory.size = 64
"""


@pytest.fixture
def shell() -> CliRunner:
    return CliRunner()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    for name in ("0_cat", "1_dog"):
        (folder / name).mkdir(parents=True)
        for i in range(3):
            pixels = np.random.default_rng(i).integers(0, 255, (70, 80, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{i}.png")
    (folder / "1_dog" / "broken.jpg").write_bytes(b"not a picture")
    return folder


def test_help_does_not_load_torch() -> None:
    code = "import sys; import heatproof.cli; assert not {'torch', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_are_objects_with_name_summary_paper_and_fields(shell: CliRunner, kind: str) -> None:
    answer = shell.invoke(app, ["list", kind, "--json"])
    assert answer.exit_code == 0
    rows = json.loads(answer.stdout)
    assert rows
    for row in rows:
        assert {"name", "summary", "paper", "fields"} <= set(row)
        assert len(row["summary"]) > 15, row["name"]
    if kind == "methods":
        assert {row["name"] for row in rows} >= {"saliency", "lrp", "random", "oracle", "edges", "grad_cam"}
        assert all(row["cost"] is not None for row in rows), [row["name"] for row in rows if row["cost"] is None]


def test_lists_can_be_read(shell: CliRunner) -> None:
    answer = shell.invoke(app, ["list", "metrics"])
    assert answer.exit_code == 0
    assert "srg" in answer.stdout


def test_a_run_on_ones_own_model_and_photos(shell: CliRunner, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FACTORY)
    out = tmp_path / "run"
    words = ["run", "--model", f"{tmp_path / 'mine.py'}:factory", "--images", str(photos), "--out", str(out)]
    answer = shell.invoke(app, [*words, "--methods", "saliency,random", "--metrics", "srg"])
    assert answer.exit_code == 1, answer.output  # one picture is broken: reported, and the run goes on
    scores = pd.read_parquet(out / "scores.parquet")
    assert set(scores[scores["status"] != "ok"]["image"]) == {"1_dog/broken.jpg"}
    assert (scores["status"] == "ok").sum() == 6 * 2
    assert (out / "report.html").is_file()
    assert "broken.jpg" in (out / "report.html").read_text()


def test_repeated_options_add_up(shell: CliRunner, tmp_path: Path) -> None:
    words = ["--images", "two_factor(count=4)", "--model", "embedded:object", "--metrics", "mif(points=3)"]
    words += ["--methods", "random", "--methods", "centre,constant", "--metrics", "srg(points=3)"]
    answer = shell.invoke(app, ["run", *words, "--out", str(tmp_path)])
    assert answer.exit_code in (0, 1), answer.output
    scores = pd.read_parquet(tmp_path / "scores.parquet")
    assert set(scores["method"]) == {"random", "centre", "constant"}
    assert scores["metric"].nunique() == 2


def test_a_run_can_be_replayed_and_its_report_drawn_again(shell: CliRunner, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["run", "--model", "embedded:object", "--methods", "saliency,random", "--metrics", "mif", "--limit", "4"]
    assert shell.invoke(app, [*words, "--out", str(out)]).exit_code == 0
    again = tmp_path / "again"
    assert shell.invoke(app, ["run", str(out / "study.json"), "--out", str(again)]).exit_code == 0
    one, other = (pd.read_parquet(folder / "scores.parquet").drop(columns="seconds") for folder in (out, again))
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    (out / "report.html").unlink()
    assert shell.invoke(app, ["report", str(out)]).exit_code == 0
    assert (out / "report.html").is_file()


def test_what_an_earlier_table_showed_does_not_vanish_without_a_word(shell: CliRunner, tmp_path: Path) -> None:
    words = ["run", "--metrics", "pointing_game", "--limit", "2", "--quiet", "--out", str(tmp_path / "run")]
    assert "no longer" not in shell.invoke(app, [*words, "--methods", "edges,centre"]).output
    answer = shell.invoke(app, [*words, "--methods", "centre,random"])
    assert "no longer in the table: method edges." in answer.output
    assert "no longer" in shell.invoke(app, [*words, "--methods", "edges"]).output
    stored = (tmp_path / "run" / "study.json").read_text()
    other = shell.invoke(app, [*words, "--methods", "edges", "--images", str(tmp_path / "nowhere")])
    assert other.exit_code == 2
    assert (tmp_path / "run" / "study.json").read_text() == stored


def test_fewer_pictures_than_last_time_are_reported(shell: CliRunner, tmp_path: Path) -> None:
    words = ["run", "--metrics", "pointing_game", "--methods", "edges,centre", "--quiet", "--out", str(tmp_path)]
    assert "shows them again" not in shell.invoke(app, [*words, "--limit", "3"]).output
    assert "shows them again" not in shell.invoke(app, [*words, "--limit", "3"]).output
    answer = shell.invoke(app, [*words, "--limit", "2"])
    assert "now has 2 pictures of two_factor (embedded:object) where it had 3" in answer.output


def test_a_stopped_run_leaves_a_report_and_a_table_that_say_so(
    shell: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heatproof.run import loop
    from heatproof.run.findings import Rows

    spread = loop.executor("local").spread

    class Stopping:
        @staticmethod
        def how_many(*_: object) -> int:
            return 1

        @staticmethod
        def spread(*given: Any) -> Iterator[Any]:
            rows = 0
            for found in spread(*given):
                yield found
                rows += isinstance(found, Rows)
                if rows == 2:
                    raise KeyboardInterrupt

        @staticmethod
        def check(*_: object) -> None: ...

        @staticmethod
        def close() -> None: ...

    monkeypatch.setattr(loop, "executor", lambda name: Stopping)
    words = ["run", "--metrics", "pointing_game", "--methods", "edges,centre", "--limit", "20", "--out", str(tmp_path)]
    answer = shell.invoke(app, words)
    assert answer.exit_code == 130, answer.output
    assert "The report is of a part, after 16 of 20 pictures" in answer.output
    assert "was stopped after 16 of 20 pictures" in (tmp_path / "report.html").read_text()
    table = shell.invoke(app, ["table", str(tmp_path)])
    assert table.exit_code == 0
    assert "The run was stopped after 16 of 20 pictures" in table.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run"], "say what to judge"),
        (["run", "--methods", "saliancy"], "Did you mean 'saliency'"),
        (["run", "--model", "embedded:objct"], "object"),
        (["run", "--model", "resnet"], "resnet"),
        (["run", "--images", "nowhere/at/all"], "no folder"),
        (["run", "nothing.json"], "no study file"),
        (["run", "study.json", "--methods", "saliency"], "leave out --methods"),
        (["run", "--methods", "saliency(step=3)"], "saliency"),
        (["run", "--methods", "integrated_gradients(steps=abc)"], "steps of method 'integrated_gradients'"),
        (["run", "--metrics", "srg(points=-1)"], "points must be at least 2"),
        (["run", "--methods", ""], "--methods must name at least one"),
        (["run", "--metrics", "srg", "--methods", " , "], "--methods must name at least one"),
        (["run", "--protocols", ""], "--protocols must name at least one"),
        (["run", "--model", "network.pt", "--metrics", "srg"], "`def factory(): …`"),
        (["run", "--images", "folder(path=x, view=big)"], "view must be a size in pixels"),
        (["report", "nowhere"], "has no run.json: name the --out of a run"),
        (["check", "nobody"], "No component is called"),
        (["consistency", "nowhere.csv"], "no file"),
        (["list", "colours"], "colours"),
    ],
)
def test_bad_usage_is_a_sentence_and_status_two(shell: CliRunner, words: list[str], says: str) -> None:
    answer = shell.invoke(app, words)
    assert answer.exit_code == 2, answer.output
    assert says in answer.output
    assert "Traceback" not in answer.output


def test_a_place_that_cannot_be_written_is_a_sentence_and_status_two(shell: CliRunner, tmp_path: Path) -> None:
    words = ["run", "--methods", "edges", "--metrics", "pointing_game", "--limit", "1", "--quiet", "--out"]
    run, taken = tmp_path / "run", tmp_path / "taken"
    taken.write_text("a file")
    assert shell.invoke(app, [*words, str(run)]).exit_code == 0
    for requested in (
        [*words, str(taken)],
        [*words, str(taken / "x")],
        ["report", str(run), "--out", str(taken / "x.html")],
    ):
        answer = shell.invoke(app, requested)
        assert answer.exit_code == 2, (requested, answer.output)
        assert "cannot be written" in answer.output
        assert str(taken) in answer.output


def test_a_method_or_metric_without_a_single_score_is_named_and_status_one(shell: CliRunner, tmp_path: Path) -> None:
    words = ["run", "--limit", "1", "--quiet", "--metrics", "srg(points=3),pointing_game"]
    answer = shell.invoke(app, [*words, "--methods", "attention_rollout", "--out", str(tmp_path / "none")])
    assert answer.exit_code == 2, answer.output  # known before the work starts
    assert "no method of this study can have a score; attention_rollout: attention_rollout needs" in answer.output
    assert not (tmp_path / "none").exists()
    some = shell.invoke(app, [*words, "--methods", "attention_rollout,saliency", "--out", str(tmp_path / "some")])
    assert some.exit_code == 1, some.output
    assert "Not a single score of attention_rollout: attention_rollout needs" in some.output
    own = tmp_path / "mine.py"
    own.write_text("""
import math
from dataclasses import dataclass
from typing import ClassVar
from heatproof.types import Reason, Scored

@dataclass(frozen=True)
class Never:
    higher_is_better: ClassVar[bool] = True
    def __call__(self, attribution):
        maps = attribution.maps
        return Scored(maps.new_full((len(maps),), math.nan), tuple("it is too dark" for _ in maps))
""")
    metrics = ["--methods", "saliency", "--metrics", f"srg(points=3),{own}:Never", "--out", str(tmp_path / "silent")]
    silent = shell.invoke(app, ["run", "--limit", "1", "--quiet", *metrics])
    assert silent.exit_code == 1, silent.output
    assert "Not a single score under" in silent.output
    assert "it is too dark" in silent.output


def test_embedded_data_need_no_model_and_ones_own_do(shell: CliRunner, photos: Path, tmp_path: Path) -> None:
    words = ["run", "--methods", "random", "--metrics", "auroc", "--quiet", "--out", str(tmp_path / "run"), "--images"]
    answer = shell.invoke(app, [*words, "two_factor(count=2)"])
    assert answer.exit_code == 0, answer.output
    assert set(pd.read_parquet(tmp_path / "run" / "scores.parquet")["model"]) == {"embedded:object"}
    for own in (str(photos), f"mosaic(of=folder(path={photos}))"):
        refused = shell.invoke(app, [*words, own])
        assert refused.exit_code == 2
        assert "need a model" in refused.output


def test_a_model_of_one_channel_is_judged_on_grey_pictures(shell: CliRunner, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "grey.py").write_text(FACTORY.replace("Conv2d(3,", "Conv2d(1,"))
    (photos / "1_dog" / "broken.jpg").unlink()
    words = ["run", "--model", f"{tmp_path / 'grey.py'}:factory", "--images", str(photos), "--quiet"]
    answer = shell.invoke(
        app, [*words, "--methods", "saliency,lrp", "--metrics", "srg(points=3)", "--out", str(tmp_path / "run")]
    )
    assert answer.exit_code == 0, answer.output
    scores = pd.read_parquet(tmp_path / "run" / "scores.parquet")
    assert (scores["status"] == "ok").all()
    replay = ["run", str(tmp_path / "run" / "study.json"), "--trust-code", "--quiet", "--out", str(tmp_path / "again")]
    again = shell.invoke(app, replay)
    assert again.exit_code == 0, again.output


def test_check_says_what_holds(shell: CliRunner) -> None:
    answer = shell.invoke(app, ["check", "saliency"])
    assert answer.exit_code == 0, answer.output
    assert "does not depend on batch mates" in answer.output


def test_explain_draws_a_grid_and_keeps_the_maps(shell: CliRunner, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "maps.png"
    words = [
        "explain",
        "--model",
        "embedded:object",
        "--methods",
        "saliency,edges,attention_rollout",
        "--out",
        str(out),
    ]
    answer = shell.invoke(app, [*words, str(photos / "0_cat")])
    assert answer.exit_code == 1, answer.output  # a CNN has no attention to roll out: reported
    assert "attention_rollout" in answer.output
    with Image.open(out) as grid:
        assert grid.width > 3 * 180
        assert grid.height > 3 * 180
    with np.load(tmp_path / "maps.npz") as raw:
        assert raw["saliency"].shape == (3, 64, 64)


def test_consistency_of_a_table(shell: CliRunner, tmp_path: Path) -> None:
    rows = [
        {
            "model": m,
            "n": n,
            "method": name,
            "mif": 0.2 + 0.1 * k + (0.15 if m == "b" and k == 0 else 0),
            "lif": 0.8 - 0.1 * k,
        }
        | {"r_oms": 0.5 + n / 1000}
        for m in "ab"
        for n in (25, 100)
        for k, name in enumerate(["lrp", "saliency", "random"])
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "scores.csv", index=False)
    answer = shell.invoke(app, ["consistency", str(tmp_path / "scores.csv"), "--json"])
    assert answer.exit_code == 0, answer.output
    message = json.loads(answer.stdout)
    assert message["n_setups"] == 4
    assert message["distinct_rankings"] == {"mif": 2, "lif": 1, "srg": 1}
    pd.DataFrame(rows[:-1]).to_csv(tmp_path / "hole.csv", index=False)
    assert shell.invoke(app, ["consistency", str(tmp_path / "hole.csv")]).exit_code == 2
    pd.DataFrame(rows[:3]).to_csv(tmp_path / "one.csv", index=False)
    alone = shell.invoke(app, ["consistency", str(tmp_path / "one.csv")])
    assert alone.exit_code == 0
    assert "one setup cannot be compared" in alone.output
    assert "nan" not in alone.output


def test_the_quick_demo(tmp_path: Path) -> None:
    """A stranger's path: the command itself, in a process of its own, to a report."""
    command = [sys.executable, "-m", "heatproof.cli", "demo", "--quick", "--out", str(tmp_path / "demo")]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        r"This takes about .*\n24 pictures of 10 classes, .* The model is right on \d+ of 24: .*\n", done.stderr
    )  # and no bar
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "oracle" in page


def test_consistency_reads_the_strategies_of_a_run(shell: CliRunner, tmp_path: Path) -> None:
    requested = "pixel_flipping(imputers=[mean, blur(sigma=3.0)], numbers=[9])"
    out = str(tmp_path / "run")
    words = ["run", "--protocols", requested, "--methods", "saliency,random", "--limit", "2", "--quiet", "--out", out]
    answer = shell.invoke(app, words)
    assert answer.exit_code == 0, answer.output
    found = shell.invoke(app, ["consistency", out, "--json"])
    assert found.exit_code == 0, found.output
    message = json.loads(found.stdout)
    assert message["n_setups"] == 2
    assert set(message["reference_ranking"]) == {"saliency", "random"}
    assert 'id="pixel_flipping"' in (tmp_path / "run" / "report.html").read_text()


def test_consistency_of_a_run_without_strategies_is_refused(shell: CliRunner, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    words = ["run", "--methods", "edges", "--metrics", "pointing_game", "--limit", "1", "--quiet", "--out", out]
    assert shell.invoke(app, words).exit_code == 0
    answer = shell.invoke(app, ["consistency", out])
    assert answer.exit_code == 2
    assert "no occlusion strategies" in answer.output
