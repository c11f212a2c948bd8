"""`--workers`: how many processes, in words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.executors import local

WORDS = ["run", "--model", "embedded:object", "--images", "two_factor", "--methods", "saliency,random"]
WORDS += ["--metrics", "pointing_game", "--limit", "32"]


def test_two_workers_write_what_one_writes(tmp_path: Path) -> None:
    tables = []
    for workers in ("1", "2"):
        answer = CliRunner().invoke(app, [*WORDS, "--out", str(tmp_path / workers), "--workers", workers])
        assert answer.exit_code == 0, answer.output
        tables.append(pd.read_parquet(tmp_path / workers / "scores.parquet").drop(columns="seconds"))
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.parametrize("words", ["many", "0", "-1", "1.5"])
def test_other_words_are_refused_in_a_sentence(words: str, tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, [*WORDS, "--out", str(tmp_path), "--workers", words])
    assert answer.exit_code == 2
    assert "workers must be a number of processes, at least 1, or 'auto', got" in answer.output


def test_commands_take_as_many_as_pay_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[object] = []
    monkeypatch.setattr(local, "how_many", lambda workers, device: requested.append(workers) or 1)
    assert CliRunner().invoke(app, [*WORDS, "--out", str(tmp_path)]).exit_code == 0
    assert requested == ["auto"]
