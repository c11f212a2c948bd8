"""`heatproof run STUDY.py`, and what it wrote run again from somewhere else."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from heatproof import registry
from heatproof.cli import app
from heatproof.spec import user_files

FACTORY = """
import torch
from torch import nn

def factory():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 5))

factory.size = 32
"""
BESIDE = """
def brightness_from_beside(model, batch):
    return batch.images.mean(1)
"""
STUDY = """
from __future__ import annotations

from dataclasses import dataclass

import beside_the_study
import heatproof


@dataclass(frozen=True)
class Power:
    of: float = 1.0

    def __call__(self, model, batch):
        return batch.images.mean(1) ** self.of


@heatproof.registry.method
@dataclass(frozen=True)
class KnownToThisFileOnly:
    def __call__(self, model, batch):
        import beside_the_study

        return beside_the_study.brightness_from_beside(model, batch)


def own(model, batch):
    return batch.images.sum(1)


study = heatproof.Study(
    models=["mine.py:factory"],
    datasets=["photos"],
    methods=[Power(2.0), KnownToThisFileOnly(), own, beside_the_study.brightness_from_beside, "random"],
    metrics=["srg(points=3)"],
)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's folder with a study, a model, pictures, and a folder of the same name elsewhere."""
    for seed, place in enumerate(("photos", "elsewhere/photos")):
        (tmp_path / place).mkdir(parents=True)
        for i in range(2):
            pixels = np.random.default_rng(10 * seed + i).integers(0, 255, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / place / f"{i}.png")
    for name, text in (("mine.py", FACTORY), ("beside_the_study.py", BESIDE), ("study.py", STUDY)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    registry.names("method")
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def _run(*words: str) -> Result:
    trusted = ["--trust-code"] if words[0].endswith(".json") else []  # the code is this person's
    return CliRunner().invoke(app, ["run", *words, *trusted, "--quiet"])


def _scores(run: Path) -> pd.DataFrame:
    return pd.read_parquet(run / "scores.parquet").drop(columns=["seconds", "model"])


def _forget(method: str = "known_to_this_file_only") -> None:
    """As in another process: nothing that the study file brought along is known any more."""
    registry._entries.pop(("method", method), None)
    user_files._read.cache_clear()
    for name in [name for name in sys.modules if name == "beside_the_study" or name.endswith("study.py")]:
        del sys.modules[name]
    sys.path[:] = [place for place in sys.path if not (Path(place) / "beside_the_study.py").is_file()]


def test_a_study_file_of_ones_own_runs_and_replays_from_anywhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _run("study.py", "--out", "first")
    assert first.exit_code == 0, first.output
    assert set(_scores(home / "first")["method"]) == {
        "power(of=2)",
        "known_to_this_file_only",
        "own",
        "brightness_from_beside",
        "random",
    }
    monkeypatch.chdir(home / "elsewhere")
    for before, after in ((home / "first", "again"), (home / "elsewhere" / "again", "and_again")):
        _forget()
        replayed = _run(str(before / "study.json"), "--out", after)
        assert replayed.exit_code == 0, replayed.output
        pd.testing.assert_frame_equal(_scores(Path(after)), _scores(home / "first"), check_exact=True)


def test_a_stored_study_names_files_by_their_whole_path(home: Path) -> None:
    assert _run("study.py", "--out", "first").exit_code == 0
    (stored,) = json.loads((home / "first" / "study.json").read_text())["studies"]
    assert stored["methods"][0]["class"] == f"{home / 'study.py'}:Power"
    assert stored["methods"][2]["function"] == f"{home / 'study.py'}:own"
    assert stored["datasets"][0]["fields"]["path"] == str(home / "photos")
    assert stored["models"][0]["from"] == f"{home / 'mine.py'}:factory"


def test_a_method_that_only_the_study_file_registers_is_known_again(home: Path) -> None:
    text = STUDY.replace(
        "Power(2.0), KnownToThisFileOnly(), own, beside_the_study.brightness_from_beside, ", "Known(), "
    )
    (home / "study.py").write_text(text.replace("KnownToThisFileOnly", "Known"))
    assert _run("study.py", "--out", "first").exit_code == 0
    _forget("known")
    replayed = _run("first/study.json", "--out", "again")
    assert replayed.exit_code == 0, replayed.output


@pytest.mark.parametrize(
    "words",
    [
        ["--images", "photos"],
        ["--images", "photos", "--limit", "1"],
        ["--images", "mosaic(of=folder(path=classes), per_class=1)"],
        ["--images", "table.csv"],
    ],
)
def test_other_pictures_are_not_taken_for_the_stored_ones(home: Path, words: list[str]) -> None:
    for name in ("0_a", "1_b"):
        shutil.copytree(home / "photos", home / "classes" / name)
    (home / "table.csv").write_text("path,label\nphotos/0.png,0\nphotos/1.png,1\n")
    requested = ["--model", "mine.py:factory", *words, "--methods", "random", "--metrics", "srg(points=3)"]
    first = _run(*requested, "--out", "first")
    assert first.exit_code == 0, first.output
    assert _run("first/study.json", "--out", "same").exit_code == 0
    for place in ("photos", "classes/0_a"):
        for name in ("0.png", "1.png"):
            shutil.copy(home / "elsewhere" / "photos" / "0.png", home / place / name)
    answer = _run("first/study.json", "--out", "other")
    assert answer.exit_code == 2, answer.output
    assert "holds other pictures now" in answer.output


def test_other_maps_are_not_taken_for_the_stored_ones(home: Path) -> None:
    np.savez(home / "maps.npz", **{"0": np.ones((32, 32)), "1": np.eye(32)})
    requested = ["--model", "mine.py:factory", "--images", "photos", "--metrics", "srg(points=3)"]
    assert _run(*requested, "--methods", "precomputed(path=maps.npz)", "--out", "first").exit_code == 0
    assert _run("first/study.json", "--out", "same").exit_code == 0
    np.savez(home / "maps.npz", **{"0": np.eye(32), "1": np.eye(32)})
    answer = _run("first/study.json", "--out", "other")
    assert answer.exit_code == 2, answer.output
    assert "holds something else now" in answer.output


def test_other_pictures_to_begin_from_are_another_method(home: Path) -> None:
    requested = ["--model", "mine.py:factory", "--images", "photos", "--metrics", "srg(points=3)", "--out", "first"]
    requested += ["--methods", "expected_gradients(background=folder(path=elsewhere/photos),draws=2)"]
    assert _run(*requested).exit_code == 0
    before = _scores(home / "first")["value"]
    assert _run("first/study.json", "--out", "same").exit_code == 0
    for picture in (home / "elsewhere" / "photos").iterdir():
        Image.new("RGB", (32, 32), "white").save(picture)
    answer = _run("first/study.json", "--out", "other")
    assert answer.exit_code == 2, answer.output
    assert "holds something else now" in answer.output
    assert _run(*requested).exit_code == 0
    assert not before.equals(_scores(home / "first")["value"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\ny = x / 0\n", "broken.py, line 2: ZeroDivisionError: division by zero"),
        ("x = 1\n\ny = (\n", "broken.py, line 3: SyntaxError: '(' was never closed"),
        ("def f():\n    raise KeyError('a')\n\nf()\n", "broken.py, line 2: KeyError: 'a'"),
        ("raise SystemExit('bye')\n", "broken.py, line 1: SystemExit: bye"),
        ("import nobody_has_this\n", "line 1: ModuleNotFoundError: No module named 'nobody_has_this'"),
        ("x = 1\n", "must define `study`"),
        ("study = 3\n", "must define `study`"),
        ("studies = ['a']\n", "must define `study`"),
    ],
)
def test_what_goes_wrong_in_a_study_file_is_a_sentence(home: Path, text: str, says: str) -> None:
    (home / "broken.py").write_text(text)
    answer = _run("broken.py", "--out", "nothing")
    assert answer.exit_code == 2, answer.output
    assert says in answer.output
    assert isinstance(answer.exception, SystemExit)


@pytest.mark.parametrize(
    "option", [["--limit", "1"], ["--seed", "0"], ["--target", "label"], ["--masks", "m"], ["--images", "photos"]]
)
def test_a_study_file_is_not_changed_by_options(home: Path, option: list[str]) -> None:
    answer = _run("study.py", *option)
    assert answer.exit_code == 2
    assert f"leave out {option[0]}" in answer.output
