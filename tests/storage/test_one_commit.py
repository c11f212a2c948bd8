"""Results are read as one run committed them, whatever a later run or a stranger puts into the directory."""

from __future__ import annotations

import errno
import functools
import math
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from networks import small_cnn

from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import HeatproofError
from heatproof.report import report, shown_commit
from heatproof.results import Results, tables
from heatproof.run import verify
from heatproof.run.loop import run
from heatproof.run.stored_engine import StoredEngine
from heatproof.spec.study import Study
from heatproof.storage import atomic_file, sealed_json


def study(metric: str) -> Study:
    return Study([small_cnn()], [TwoFactor(count=3)], ["random", "edges"], [metric], shard=2)


def problems(root: Path) -> dict[str, str]:
    return {finding.file: finding.problem for finding in verify.check(root) if finding.problem}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole") / "run"
    report(run(study("mif"), root), root)
    return root


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.mark.parametrize("later", ["curves", "details", "gallery"])
def test_loaded_results_never_mix_with_those_of_a_later_run(copy: Path, later: str) -> None:
    """As in a notebook that puts two questions into one directory and then looks at the first one's curves."""
    first, untouched = Results.load(copy), Results.load(copy)
    assert len(first.curves) == 6
    second = run(Study([small_cnn()], [TwoFactor(count=4)], ["random"], ["lif"], shard=2), copy)
    with pytest.raises(HeatproofError, match="load the results again"):
        getattr(untouched, later)
    assert len(first.curves) == 6
    assert len(second.curves) == 4


def test_a_run_that_commits_while_results_are_loaded_is_noticed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the hashes and the reading of the files."""
    from heatproof.results import run_state

    committed = run_state.committed

    def overtaken(root: Path) -> Any:
        monkeypatch.undo()
        state = committed(root)
        run(study("lif"), root)
        return state

    monkeypatch.setattr(run_state, "committed", overtaken)
    with pytest.raises(HeatproofError, match="load the results again"):
        Results.load(copy)
    assert Results.load(copy).metrics == ["lif"]


def test_a_page_of_earlier_results_is_named(copy: Path) -> None:
    assert problems(copy) == {}
    assert shown_commit((copy / "report.html").read_bytes()) == Results.load(copy).commit
    run(study("lif"), copy)  # killed before it drew its page
    assert list(problems(copy)) == ["report.html"]
    assert "other results" in problems(copy)["report.html"]
    report(Results.load(copy), copy)
    assert problems(copy) == {}


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """A pipe would be waited for and a device read for ever: then the test fails, and does not hang."""

    def late(*_: object) -> None:
        raise TimeoutError("waited for a pipe, or read a device")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("what", ["pipe", "endless device"])
@pytest.mark.parametrize(
    "kind",
    ["run.json", "info.json", "scores.parquet", "gallery.json", "parts/scores*", "parts/pictures*", "gallery/*/*"],
)
@pytest.mark.usefixtures("no_waiting")
def test_what_is_no_file_is_not_read_and_is_replaced(whole: Path, copy: Path, kind: str, what: str) -> None:
    path = min(copy.glob(kind))
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    assert str(path.relative_to(copy)) in problems(copy)
    try:
        assert tables.rankings(Results.load(copy)) is not None
        _ = Results.load(copy).gallery
    except HeatproofError as error:
        assert "run the same command again" in str(error) or "no run.json" in str(error)  # noqa: PT017
    StoredEngine.beside(copy / "study.json")
    healed = run(study("mif"), copy)
    report(healed, copy)
    assert {name for name in problems(copy) if not name.endswith(".damaged")} == set()  # a part was set aside
    csv = [tables.written(tables.rankings(Results.load(root)), "csv") for root in (whole, copy)]
    assert csv[0] == csv[1]


STOP = {"dataset": "d", "model": "m", "shards": 1, "pictures": 8, "available": 8, "looks": [8], "reason": "decided"}
FORGED: dict[str, list[tuple[str, Any]]] = {
    "run.json": [("results", None), ("results", "x"), ("results", {"/dev/zero": 3}), ("state", []), ("seconds", "x")],
    "gallery.json": [("files", -1.5), ("files", [["a"]]), ("files", {"a": None}), ("files", {"/dev/zero": "a"})],
    "info.json": [
        ("metrics", "x"),
        ("metrics", {"mif": 3}),
        ("metrics", {"mif": {"axes": 3}}),
        ("methods", []),
        ("methods", None),
        ("methods", {"random": {"control": "yes"}}),
        ("methods", {"random": {"paper": ["x"]}}),
        ("seconds", math.inf),
        ("seconds", math.nan),
        ("seconds", "x"),
        ("started", 3),
        ("stopped", {}),
        ("protocols", [["mosaics"]]),
        ("versions", {"torch": 2}),
        ("damaged", 1),
        ("left_out", []),
        ("studies", {}),
        ("studies", [{"seed": "x"}]),
        ("studies", [{"models": ["x"]}]),
        ("studies", [{"notes": []}]),
        ("pictures", [{"dataset": "d"}]),
        ("pictures", [{"dataset": "d", "model": "m", "pictures": -1, "classes": {}}]),
        ("pictures", [{"dataset": "d", "model": "m", "pictures": 1, "classes": {}, "accuracy": {"share": 7}}]),
        ("until", {"margin": 0.1}),
        ("until", {"margin": 0.1, "alpha": 0.05, "pairs": [{}]}),
        ("until", {"margin": 0.1, "alpha": 0.05, "levels": [0.01], "stops": [{**STOP, "looks": []}]}),
        ("engine", functools.reduce(lambda inner, _: [inner], range(200), 1)),
    ],
}


@pytest.mark.parametrize(("name", "key", "value"), [(name, *change) for name in FORGED for change in FORGED[name]])
@pytest.mark.usefixtures("no_waiting")
def test_a_forged_directory_with_the_right_seals_is_refused_in_a_sentence(
    copy: Path, name: str, key: str, value: Any
) -> None:
    def forge(file: str, **changes: Any) -> None:
        content = sealed_json.read((copy / file).read_bytes(), file)
        (copy / file).write_bytes(sealed_json.written({**content, **changes}))

    forge(name, **{key: value})
    if name != "run.json":
        hashes = sealed_json.read((copy / "run.json").read_bytes(), "run.json")["results"]
        forge("run.json", results={**hashes, name: atomic_file.sha256_of(copy / name)})
    if name != "info.json":  # it is what it says, as far as hashes go
        assert problems(copy)
    with pytest.raises(HeatproofError):
        report(Results.load(copy), copy)


def test_new_folders_last_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A synced file in a folder whose own name never reached the disk is lost by a power cut."""
    synced: list[Path] = []
    monkeypatch.setattr(atomic_file, "_sync_folder", synced.append)
    atomic_file.write_atomically(tmp_path / "a" / "b" / "c.json", b"{}")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    synced.clear()
    atomic_file.write_atomically(tmp_path / "a" / "b" / "d.json", b"{}")
    assert synced == [tmp_path / "a" / "b"]


def test_a_file_system_without_locks_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    assert run(study("mif"), tmp_path / "run").complete
