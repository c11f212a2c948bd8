"""Replays compute as the stored run did; the reference engine computes the same whatever was measured before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from heatproof import engine
from heatproof.cli import app
from heatproof.engine import autotune
from heatproof.errors import BadInput
from heatproof.run.engine_choices import begin_with, engine_of, resume_choices
from heatproof.run.loop import run
from heatproof.run.store import Store
from heatproof.spec.replay import compared
from heatproof.spec.study import Study
from heatproof.storage import cache, sealed_json

COLUMNS = ["dataset", "model", "method", "metric", "image", "value"]

METRIC = "sensitivity_n(sizes=2, sets=8)"  # its correlations hear float noise

# A process that fills its own cache with choices of its own kind, then judges.
PROCESS = f"""
import sys
from heatproof.engine import autotune
from heatproof.run import run
from heatproof.spec.study import Study

gain, out, threads = float(sys.argv[1]), sys.argv[2], int(sys.argv[3])
autotune.GAIN = gain  # any copy is quick enough, or none
autotune.EXPORTABLE = 0
import torch
torch.set_num_threads(threads)
study = Study(["embedded:object"], ["two_factor(count=3)"], ["saliency", "guided_ig(steps=4)"], ["{METRIC}"])
for kind in ("auto", "reference"):
    run(study, f"{{out}}/{{kind}}", engine=kind)
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "cache"))
    with engine.use(engine.Engine()):
        yield


def study(*methods: str) -> Study:
    return Study(["embedded:object"], ["two_factor(count=3)"], list(methods or ["saliency"]), [METRIC])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose choices were measured, and the cache that holds them."""
    home = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patched, engine.use(engine.Engine()):
        patched.setenv("HEATPROOF_CACHE", str(home / "cache"))
        run(study(), home / "run")
    return home


@pytest.fixture
def known(measured: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That run, with its cache in use."""
    monkeypatch.setenv("HEATPROOF_CACHE", str(measured / "cache"))
    return measured / "run"


def choices_in(file: Path) -> dict[str, Any]:
    return sealed_json.read(file.read_bytes(), file)


def table(out: Path) -> pd.DataFrame:
    return pd.read_parquet(out / "scores.parquet")[COLUMNS]


def test_other_choices_in_the_cache_do_not_move_the_reference(tmp_path: Path) -> None:
    for name, gain, threads in (("one", "inf", "1"), ("other", "-1", "2")):
        env = {**os.environ, "HEATPROOF_CACHE": str(tmp_path / f"cache-{name}")}
        command = [sys.executable, "-c", PROCESS, gain, str(tmp_path / name), threads]
        subprocess.run(command, env=env, check=True, capture_output=True)
    one, other = tmp_path / "one", tmp_path / "other"
    ways = [choices_in(out / "auto" / "engine.json") for out in (one, other)]
    gradients = [{c["backend"] for q, c in way.items() if q.startswith("gradient")} for way in ways]
    assert gradients[0] != gradients[1]  # the caches do hold other choices
    assert not table(one / "auto").equals(table(other / "auto"))
    pd.testing.assert_frame_equal(table(one / "reference"), table(other / "reference"), check_exact=True)
    info = json.loads((one / "reference" / "info.json").read_text())
    assert info["engine_kind"] == "reference"
    assert info["engine"]["every pass"]["size"] == engine.REFERENCE.size


def test_the_reference_reads_and_leaves_nothing_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotune, "choose", lambda *_: pytest.fail("measured"))
    run(study(), tmp_path / "out", engine="reference")
    assert not (tmp_path / "cache").exists()
    assert cache.cache_directory() == tmp_path / "cache"
    assert engine.current().kind == "auto"


def test_the_reference_is_the_network_itself_in_micro_batches_of_eight() -> None:
    from heatproof.models import load

    model, seen = load("embedded:object"), []
    images, targets = torch.rand(11, 3, 64, 64), torch.arange(11) % 10
    with engine_of("reference"):
        logits = engine.forward(model, images)
        slopes, _ = engine.gradient(model, images, targets)
        listening = model.network.register_forward_hook(lambda _m, inputs, _o: seen.append(len(inputs[0])))
        assert torch.equal(engine.forward(model, images), logits)  # hooks change nothing
        assert torch.equal(engine.gradient(model, images, targets)[0], slopes)
        listening.remove()
    assert set(seen) == {8}
    with torch.no_grad():
        assert torch.equal(logits[:8], model(images[:8]))


def test_one_directory_does_not_mix_engines(tmp_path: Path, known: Path) -> None:
    def units() -> set[str]:
        files = (tmp_path / "parts").glob("scores-*")
        return {key for file in files for key in pq.read_table(file)["unit"].to_pylist()}

    auto = run(study(), tmp_path)
    before = units()
    reference = run(study(), tmp_path, engine="reference")
    assert len(units()) == 2 * len(before)
    assert (auto.info.engine_kind, reference.info.engine_kind) == ("auto", "reference")
    assert len(reference.scores) == len(auto.scores)
    run(study(), tmp_path)
    assert len(units()) == 2 * len(before)  # and both are found again


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="engine must be one of auto, reference, got 'fast'"):
        run(study(), tmp_path, engine="fast")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def _replayed(*words: str) -> Any:
    return CliRunner().invoke(app, ["run", *words, "--quiet", "--workers", "1"])


def test_a_replay_begins_with_the_choices_beside_the_study(
    tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = choices_in(known / "engine.json")
    forced = {q: {**c, "backend": "untouched", "layout": "contiguous", "size": 3} for q, c in choices.items()}
    run(study("guided_ig(steps=4)"), tmp_path / "forced", choices=forced)
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "another"))  # where nothing was measured
    again = _replayed(str(tmp_path / "forced" / "study.json"), "--out", str(tmp_path / "again"))
    assert again.exit_code == 0, again.output
    written = choices_in(tmp_path / "again" / "engine.json")
    assert {q: written[q] for q in forced} == forced
    pd.testing.assert_frame_equal(table(tmp_path / "again"), table(tmp_path / "forced"), check_exact=True)


def test_a_reference_run_replays_by_the_reference_engine(tmp_path: Path, known: Path) -> None:
    run(study(), tmp_path / "first", engine="reference")
    again = _replayed(str(tmp_path / "first" / "study.json"), "--out", str(tmp_path / "again"))
    assert again.exit_code == 0, again.output
    assert json.loads((tmp_path / "again" / "info.json").read_text())["engine_kind"] == "reference"
    assert "largest difference 0" in again.output
    other = _replayed(str(tmp_path / "first" / "study.json"), "--out", str(tmp_path / "other"), "--engine", "auto")
    assert json.loads((tmp_path / "other" / "info.json").read_text())["engine_kind"] == "auto", other.output


@pytest.mark.parametrize("size", [10**9, 0, -1, float("nan"), "8", None])
def test_nonsense_beside_a_study_is_named_and_left_out(known: Path, size: Any) -> None:
    choices = choices_in(known / "engine.json")
    with pytest.warns(UserWarning, match="make no sense and are measured again: (forward|gradient)"):
        begin_with({q: {**c, "size": size} for q, c in choices.items()}, "the stored run")
    assert not engine.current().record()


def test_what_was_left_out_is_found_anew(tmp_path: Path, known: Path) -> None:
    choices = choices_in(known / "engine.json")
    with pytest.warns(UserWarning, match="make no sense and are measured again"):
        run(study(), tmp_path / "again", choices={q: {**c, "size": 0} for q, c in choices.items()})
    assert choices_in(tmp_path / "again" / "engine.json") == choices  # from the cache


@pytest.mark.parametrize("written", ["", "[]", "3", '"x"', "{", '{"forward": 1}', "[" * 100_000])
def test_a_damaged_engine_file_is_none(tmp_path: Path, known: Path, written: str) -> None:
    shutil.copytree(known, tmp_path / "first")
    (tmp_path / "first" / "engine.json").write_text(written)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a list of choices is named, bytes are not
        resume_choices(Store(tmp_path / "first"))
    assert not engine.current().record()


def test_a_study_beside_a_damaged_engine_file_replays(tmp_path: Path, known: Path) -> None:
    shutil.copytree(known, tmp_path / "first")
    (tmp_path / "first" / "engine.json").write_text("[" * 100_000)
    again = _replayed(str(tmp_path / "first" / "study.json"), "--out", str(tmp_path / "again"))
    assert again.exit_code == 0, again.output


def test_what_another_machine_chose_is_named() -> None:
    with engine_of("auto") as owner:
        from heatproof.models import load

        engine.forward(load("embedded:object"), torch.rand(1, 3, 64, 64))
    ((question, fields),) = owner.record().items()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        begin_with({question: fields}, "here")
    for old, new in (("torch 2", "torch 1"), ("onnxruntime ", "onnxruntime 0."), ("| cpu ", "| gpu ")):
        assert old in question
        with pytest.warns(UserWarning, match=rf"there was computed otherwise .*{new.strip('| ')}.* there, "):
            begin_with({question.replace(old, new): fields}, "there")


def test_a_replay_under_other_choices_is_close_or_named_and_by_the_reference_the_same(
    tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = Study(
        ["embedded:object"],
        ["two_factor(count=4)"],
        ["saliency", "integrated_gradients(steps=4)", "grad_cam", "isa(rounds=8)"],
        ["srg(points=5)", METRIC],
    )
    first, again = run(requested, tmp_path / "first"), tmp_path / "again"
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "another"))  # another machine, which measures otherwise
    chosen = choices_in(tmp_path / "first" / "engine.json")
    other = {"backend": "untouched", "layout": "contiguous", "size": 3}
    now = run(requested, again, choices={question: {**fields, **other} for question, fields in chosen.items()})
    unstable = [label for label, about in now.info.methods.items() if about.unstable]
    assert unstable == ["isa(rounds=8)"]
    found = compared(first.scores, now.scores, {}, again, unstable)
    assert not found.same  # the choices are others
    assert found.holds, str(found)
    assert found.unstable["isa(rounds=8)"] > 1e-4
    assert "isa(rounds=8)" in str(found)
    tables = []
    for name in ("one", "two"):
        monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / f"cache-{name}"))
        run(requested, tmp_path / name, engine="reference")
        tables.append(table(tmp_path / name))
    pd.testing.assert_frame_equal(*tables, check_exact=True)
