"""One writer per run directory; a run that was ended by force is not in the way of the next."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from networks import small_cnn
from storage.breaking import in_a_fork
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.results import Results, run_state
from heatproof.run import lock, run
from heatproof.spec.study import Study
from heatproof.storage.atomic_file import StoreFull


def study(metric: str = "mif", count: int = 4) -> Study:
    return Study([small_cnn()], [TwoFactor(count=count)], ["random", "edges"], [metric], shard=2)


def test_a_second_writer_gets_a_sentence_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.time, "sleep", lambda _: None)
    first = run(study("mif"), tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with lock.held(tmp_path / "run"):
        status = in_a_fork(lambda: run(study("lif"), tmp_path / "run"))
        with pytest.raises(lock.InUse, match=rf"being written by another run \(process {os.getpid()} on"):
            run(study("lif"), tmp_path / "run")
    assert status == 1
    after = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} <= {tmp_path / "run" / ".lock"}
    assert Results.load(tmp_path / "run").metrics == first.metrics == ["mif"]
    assert run(study("lif"), tmp_path / "run").metrics == ["lif"]  # the lock is free again


def test_a_full_disk_is_a_sentence_from_the_first_file_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(lock.os, "write", full)
    monkeypatch.setattr("heatproof.storage.atomic_file._created", full)
    with pytest.raises(StoreFull, match=r"no space left for .*run\.json"):
        run(study(), tmp_path / "run")


SLOWLY = """
import time, heatproof
def slow(model, batch):
    time.sleep(0.4)
    return batch.images.mean(1)
study = heatproof.Study(["embedded:object_plain"], ["two_factor(count=120)"], [slow, "random"], ["mif"], shard=2)
"""


def begun(folder: Path) -> subprocess.Popen[bytes]:
    """A slow run in a process of its own, after its first units."""
    (folder / "study.py").write_text(SLOWLY)
    before = len(list((folder / "run" / "parts").glob("scores-*")))
    command = [sys.executable, "-m", "heatproof.cli", "run", "study.py", "--out", "run", "--workers", "1"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(list((folder / "run" / "parts").glob("scores-*"))) < before + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None
    return process


def test_a_terminated_run_keeps_its_time_and_what_all_methods_were_judged_on(tmp_path: Path) -> None:
    process = begun(tmp_path)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Stopped. Everything finished is kept" in errors
    state = run_state.committed(tmp_path / "run")
    assert state.state == "stopped"
    assert state.seconds > 0.3
    results = Results.load(tmp_path / "run")
    assert 2 <= results.scores["image"].nunique() < 120
    assert results.info.seconds == pytest.approx(state.seconds, abs=5)
    assert results.scores.groupby("method").size().nunique() == 1


def test_a_killed_run_has_its_time_and_says_that_it_has_not_finished(tmp_path: Path) -> None:
    run(study("lif"), tmp_path / "run")
    process = begun(tmp_path)
    refused = CliRunner().invoke(app, ["run", str(tmp_path / "study.py"), "--out", str(tmp_path / "run")])
    assert refused.exit_code == 2
    assert "being written by another run" in refused.output
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    table = CliRunner().invoke(app, ["table", str(tmp_path / "run")])
    assert table.exit_code == 0
    assert "lif" in table.output
    assert "an earlier run" in table.output
    assert "has not finished, or was killed" in table.output
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "run")])
    assert "is a leftover" in checked.output or checked.exit_code == 0
