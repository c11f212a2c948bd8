"""A run's study.json run again: by another layer, from another place, with parts that were made in Python."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

import heatproof
from heatproof import registry
from heatproof.cli import app
from heatproof.errors import HeatproofError
from heatproof.results import run_state
from heatproof.spec import recipe, user_files
from heatproof.spec.parse import parse
from heatproof.spec.study import load
from heatproof.storage.atomic_file import sha256_of

MINE = """
import functools
from dataclasses import dataclass

import torch
from torch import nn

import heatproof


def factory():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 5))

factory.size = 32


class Plain:
    def __call__(self, model, batch):
        return batch.images.mean(1)


class Scaled:
    def __init__(self, k=3):
        self.k = k

    def __call__(self, model, batch):
        return batch.images.mean(1) * self.k


@heatproof.registry.method
@dataclass(frozen=True)
class Widened:
    width: int = 1

    def __call__(self, model, batch):
        return batch.images.mean(1) * self.width


@heatproof.registry.metric
@dataclass(frozen=True)
class Brightest:
    higher_is_better = True

    def __call__(self, attribution):
        return attribution.maps.amax((1, 2))


def bright(model, batch):
    return batch.images.mean(1)


def times(model, batch, k):
    return batch.images.mean(1) * k


def negated(function):
    @functools.wraps(function)
    def inner(model, batch):
        return -function(model, batch)

    return inner


def made(k):
    def inner(model, batch):
        return batch.images.mean(1) * k

    return inner


plain, default, changed = Plain(), Scaled(), Scaled(2)
dark, without_a_name, closure = negated(bright), lambda model, batch: batch.images.mean(1), made(3)
doubled, masked = functools.partial(times, k=2), functools.partial(times, k=torch.ones(32, 32))
"""
STUDY = """
import heatproof
import mine

study = heatproof.Study(models=[MODEL], datasets=["photos"], methods=[mine.NAME], metrics=["srg(points=3)"])
"""
OURS = "heatproof.Model('ours', mine.factory(), view=heatproof.View(32))"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's folder with a model, methods and pictures."""
    place = tmp_path / "home"
    (place / "photos").mkdir(parents=True)
    for i in range(2):
        pixels = np.random.default_rng(i).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / "photos" / f"{i}.png")
    (place / "mine.py").write_text(MINE)
    monkeypatch.chdir(place)
    registry.names("method")
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return place


def _run(*words: str) -> Result:
    _forget()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CliRunner().invoke(app, ["run", *words, *_trusted(words), "--quiet"])


def _trusted(words: tuple[str, ...]) -> list[str]:
    """Stored studies of these tests name the code in this person's folder; tests/security has those of strangers."""
    return ["--trust-code"] if words[0].endswith(".json") else []


def _ask(method: str, out: str = "first") -> Result:
    requested = ["--model", "mine.py:factory", "--images", "photos", "--metrics", "srg(points=3)"]
    return _run(*requested, "--methods", method, "--out", out)


def _forget() -> None:
    """As in another process: nothing that files of one's own brought along is known any more."""
    for key in [key for key, entry in registry._entries.items() if entry.make.__module__.endswith(("mine", ".py"))]:
        del registry._entries[key]
    user_files._read.cache_clear()
    for name in [name for name in sys.modules if name == "mine" or name.endswith(".py")]:
        del sys.modules[name]
    sys.path[:] = [place for place in sys.path if not (Path(place) / "mine.py").is_file()]


SAME = "largest difference 0"
FINDABLE = ["Plain", "plain", "default", "Scaled", "Widened", "Widened(width=3)", "bright", "doubled"]
LOST = {
    "changed": "is the class of an object made in Python",
    "dark": "made of it in Python under the same name",
    "without_a_name": "is a lambda, or a function made by another one",
    "closure": "is a lambda, or a function made by another one",
    "masked": "is the class of an object made in Python",
}


@pytest.mark.parametrize("name", FINDABLE)
def test_a_class_or_function_in_a_file_is_a_method_and_replays_from_anywhere(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    first = _ask(f"mine.py:{name}")
    assert first.exit_code == 0, first.output
    monkeypatch.chdir(home.parent)
    again = _run("home/first/study.json", "--out", "again")
    assert again.exit_code == 0, again.output
    assert f"2 scores as in home/first/scores.parquet, {SAME}" in again.output


@pytest.mark.parametrize(("name", "says"), LOST.items())
def test_what_has_no_name_is_reported_when_it_runs_and_when_it_is_replayed(home: Path, name: str, says: str) -> None:
    _forget()
    method = parse("method", f"mine.py:{name}")
    model = heatproof.models.load("mine.py:factory")
    study = heatproof.Study(models=[model], datasets=["photos"], methods=[method], metrics=["srg(points=3)"])
    with pytest.warns(UserWarning, match=r"study\.json will not find"):
        heatproof.run(study, "first")
    _forget()
    with pytest.raises(HeatproofError, match=says):
        load("first/study.json", trust_code=True)


def test_what_has_a_name_is_no_warning(home: Path) -> None:
    _forget()
    methods = [parse("method", f"mine.py:{name}") for name in FINDABLE]
    assert [list(recipe.lost(method)) for method in methods] == [[]] * len(methods)


@pytest.mark.parametrize("name", [*LOST, "plain", "Widened(2)", "doubled"])
def test_a_study_file_makes_again_what_has_no_name(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (home / "study.py").write_text(STUDY.replace("MODEL", OURS).replace("NAME", name))
    first = _run("study.py", "--out", "first")
    assert first.exit_code == 0, first.output
    monkeypatch.chdir(home.parent)
    again = _run("home/first/study.json", "--out", "again")
    assert again.exit_code == 0, again.output
    assert SAME in again.output


def test_a_study_file_whose_model_is_another_now_is_refused(home: Path) -> None:
    (home / "study.py").write_text(STUDY.replace("MODEL", OURS).replace("NAME", "plain"))
    assert _run("study.py", "--out", "first").exit_code == 0
    (home / "mine.py").write_text(MINE.replace("manual_seed(0)", "manual_seed(1)"))
    again = _run("first/study.json", "--out", "again")
    assert again.exit_code == 2
    assert "model 'ours' has other weights now" in again.output


def test_a_model_made_in_a_script_is_named_as_such(home: Path) -> None:
    _forget()
    given = heatproof.models.load("mine.py:factory")
    model = heatproof.Model("ours", given.network, view=given.view)
    heatproof.run(heatproof.Study([model], ["photos"], ["random"], ["srg(points=3)"]), "first")
    refused = _run("first/study.json", "--out", "again")
    assert refused.exit_code == 2
    assert "model 'ours' was made in Python" in refused.output
    assert "name it by file.py:factory" in refused.output
    found = _run("first/study.json", "--out", "again", "--model", "mine.py:factory")
    assert "has other weights now" in found.output  # another CAM layer: not what was judged


def test_what_was_moved_is_found_from_the_working_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(home / "maps.npz", **{"0": np.ones((32, 32)), "1": np.eye(32)})
    first = _ask("mine.py:Widened,precomputed(path=maps.npz),random")
    assert first.exit_code == 0, first.output
    moved = home.rename(home.parent / "moved")
    monkeypatch.chdir(moved)
    again = _run("first/study.json", "--out", "again")
    assert again.exit_code == 0, again.output
    assert f"6 scores as in first/scores.parquet, {SAME}" in again.output
    assert _run("again/study.json", "--out", "and_again").exit_code == 0


def test_new_places_can_be_given_and_other_things_there_are_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _ask("random").exit_code == 0
    elsewhere = home.parent / "elsewhere"
    (elsewhere / "code").mkdir(parents=True)
    (home / "photos").rename(elsewhere / "pictures")
    (home / "mine.py").rename(elsewhere / "code" / "model.py")
    monkeypatch.chdir(elsewhere)
    stored = str(home / "first" / "study.json")
    assert _run(stored, "--out", "again").exit_code == 2
    places = ["--model", "code/model.py:factory", "--images", "pictures"]
    again = _run(stored, *places, "--out", "again")
    assert again.exit_code == 0, again.output
    assert f"2 scores as in {home / 'first' / 'scores.parquet'}, {SAME}" in again.output
    twice = _run(stored, *places, "--images", "pictures", "--out", "again")
    assert twice.exit_code == 2
    assert "--images must give the new path of each of these" in twice.output
    assert "leave out --limit" in _run(stored, *places, "--limit", "1").output
    shutil.copy(elsewhere / "pictures" / "0.png", elsewhere / "pictures" / "1.png")
    assert "holds other pictures now" in _run(stored, *places, "--out", "other").output


def _commit(scores: pd.DataFrame) -> None:
    """Other scores in the place of the first run's, as if it had found them."""
    root = Path("first")
    scores.to_parquet(root / "scores.parquet", index=False)
    state = run_state.RunState.read(root)
    assert state is not None
    hashes = {**state.results, "scores.parquet": sha256_of(root / "scores.parquet")}
    dataclasses.replace(state, results=hashes).write(root)


def test_scores_that_do_not_belong_to_their_study_are_not_compared(home: Path) -> None:
    assert _ask("random").exit_code == 0
    scores = pd.read_parquet("first/scores.parquet")
    scores.assign(value=scores["value"] + 0.25).to_parquet("first/scores.parquet")
    again = _run("first/study.json", "--out", "again")
    assert again.exit_code == 0
    assert "cannot be compared with its first run: the files of first do not belong together" in again.output


def test_numbers_that_moved_are_reported(home: Path) -> None:
    assert _ask("random").exit_code == 0
    scores = pd.read_parquet("first/scores.parquet")
    scores.loc[0, "value"] += 0.25
    _commit(scores)
    again = _run("first/study.json", "--out", "again")
    assert "2 scores compared with first/scores.parquet, largest difference 0.25" in again.output
    _commit(pd.concat([scores, scores.assign(method="gone")]))
    assert "largest difference 0.25; 2 only there" in _run("first/study.json", "--out", "again").output


def test_a_partial_is_called_by_its_function_and_what_it_holds(home: Path) -> None:
    _forget()
    assert recipe.label(parse("method", "mine.py:doubled")) == "times(k=2)"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine.py:Widend", "Did you mean 'Widened'"),
        ("nowhere.py:X", "there is no file"),
        ("mine.py:Widened(wdth=3)", "Did you mean 'width'"),
        ("mine.py:Widened(width=x)", "width of method 'Widened' must be a whole number"),
        ("mine.py:Widened(3)", "must name its fields"),
        ("inverted(method=mine.py:Nobody)", "No method in"),
    ],
)
def test_what_is_not_in_the_file_is_named(home: Path, name: str, says: str) -> None:
    answer = _ask(name)
    assert answer.exit_code == 2, answer.output
    assert says in answer.output


def test_ones_own_can_be_checked_and_stand_in_a_field(home: Path) -> None:
    _forget()
    for name in ("Widened", "bright", "Brightest"):
        answer = CliRunner().invoke(app, ["check", f"mine.py:{name}"])
        assert answer.exit_code == 0, answer.output
    assert "gives finite maps" not in answer.output  # the last one is a metric
    assert recipe.label(parse("method", "inverted(method=mine.py:Widened)")) == "inverted(method=widened)"


def test_a_registered_method_of_a_file_is_stored_with_its_file(home: Path) -> None:
    assert _ask("mine.py:Widened").exit_code == 0
    (stored,) = json.loads(Path("first/study.json").read_text())["studies"]
    assert stored["methods"][0]["class"] == f"{home / 'mine.py'}:Widened"
