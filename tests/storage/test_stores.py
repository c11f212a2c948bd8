"""Runs in a folder of an object store: no locks, no renames, and files that are put whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import Missing
from heatproof.report import report
from heatproof.results import Results
from heatproof.run import run, verify
from heatproof.run.gather import gather
from heatproof.run.share import Share
from heatproof.run.store import NotWritable
from heatproof.spec.study import Study
from heatproof.storage import any_path
from heatproof.storage.atomic_file import write_atomically


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield
    MemoryFileSystem.store.clear()


def study(*methods: str) -> Study:
    data = [TwoFactor(count=4)]
    return Study(["embedded:object"], data, [*methods] or ["saliency", "edges"], ["mif", "auc_iou"], shard=2)  # type: ignore[list-item]


def numbers(results: Results) -> pd.DataFrame:
    return results.scores.drop(columns="seconds")


def test_a_run_in_a_store_is_the_local_one_and_goes_on(tmp_path: Path) -> None:
    local = run(study(), tmp_path / "run")
    out = "memory://bucket/run"
    run(study("saliency"), out)
    counts: list[int] = []
    results = run(study(), out, watch=lambda done, *_: counts.append(done))
    assert counts == [5, 6, 7, 8]  # the units of the first run were found
    pd.testing.assert_frame_equal(numbers(results), numbers(local), check_exact=True)
    loaded = Results.load(out)
    pd.testing.assert_frame_equal(numbers(loaded), numbers(local), check_exact=True)
    assert len(loaded.curves) == len(local.curves)
    assert len(loaded.gallery) == len(local.gallery) > 0
    assert report(loaded, out).read_bytes().startswith(b"<!doctype html>")
    assert [one for one in verify.check(any_path.folder(out)) if one.problem] == []
    assert not list(Path.cwd().glob("memory*"))


def test_what_is_damaged_in_a_store_is_computed_again() -> None:
    first = run(study(), "memory://bucket/run")
    kept = min(any_path.folder("memory://bucket/run/parts").glob("scores-*"))
    kept.write_bytes(kept.read_bytes()[:-9] + b"x" * 9)
    again = run(study(), "memory://bucket/run")
    assert again.info.damaged == (kept.name,)
    pd.testing.assert_frame_equal(numbers(again), numbers(first), check_exact=True)


def test_parts_of_a_study_are_gathered_in_a_store() -> None:
    for number in (1, 2):
        run(study(), f"memory://bucket/{number}", share=Share(number, 2))
    gathered = gather([f"memory://bucket/{number}" for number in (1, 2)], "memory://bucket/whole")
    pd.testing.assert_frame_equal(numbers(gathered), numbers(run(study(), "memory://bucket/one")), check_exact=True)


def test_the_command_line_knows_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = "memory://bucket/run"
    options = ["--model", "embedded:object", "--images", "two_factor(count=2)", "--methods", "saliency,edges"]
    done = CliRunner().invoke(app, ["run", *options, "--metrics", "mif", "--out", out])
    assert done.exit_code == 0, done.output
    assert f"{out}/report.html" in done.output
    for command in ("table", "verify", "report"):
        found = CliRunner().invoke(app, [command, out])
        assert found.exit_code == 0, found.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["runs/a", "/tmp/a", "C:\\runs", "C:/runs", "a b:/c", "s3", "a:b"])
def test_other_texts_are_folders_of_this_machine(text: str) -> None:
    assert any_path.folder(text) == Path(text)


def test_one_slash_lost_by_a_path_is_found_again() -> None:
    found = any_path.folder(Path("memory://bucket/run"))
    assert str(found) == "memory://bucket/run"
    assert any_path.folder(found) == found
    assert any_path.is_remote(found)


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(Missing, match=r"reading and writing s3:// needs .*heatproof\[remote\]"):
        any_path.folder("s3://bucket/run")


def test_a_store_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError("access denied")

    monkeypatch.setattr(MemoryFileSystem, "put_file", refused)
    with pytest.raises(NotWritable, match=r"memory://bucket/a cannot be written \(access denied\)"):
        write_atomically(any_path.folder("memory://bucket/a"), b"x")
