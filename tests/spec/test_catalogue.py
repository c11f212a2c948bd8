"""The catalogue: the same from the cache as from the components, made again as soon as anything changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heatproof import registry
from heatproof.spec import catalogue, recipe

LISTED = (
    "import sys; from heatproof.spec.catalogue import catalogue; import json; print(json.dumps(catalogue('method')))"
)
LOADED = "; print('torch' in sys.modules)"


def listed(cache: Path, code: str = LISTED + LOADED) -> list[str]:
    """What a new process prints."""
    environment = {**os.environ, "HEATPROOF_CACHE": str(cache)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return run.stdout.splitlines()


def test_a_second_process_lists_the_same_without_torch(tmp_path, monkeypatch):
    expected = [recipe.listed(registry.entry("method", name)) for name in registry.names("method")]
    first, second = listed(tmp_path), listed(tmp_path)
    assert json.loads(first[0]) == json.loads(second[0]) == json.loads(json.dumps(expected))
    assert [first[1], second[1]] == ["True", "False"]
    (kept,) = (tmp_path / "catalogue").iterdir()
    kept.write_bytes(kept.read_bytes()[:-9] + b"}]       ")  # damaged: made again
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    monkeypatch.setattr(registry, "loaded", lambda: False)
    assert json.loads(json.dumps(catalogue.catalogue("method"))) == json.loads(first[0])
    assert listed(tmp_path) == second


def test_whatever_changes_makes_another_name(monkeypatch, tmp_path):
    before = catalogue._state()
    assert catalogue._state() == before
    home = tmp_path / "heatproof"
    home.mkdir()
    (home / "method.py").write_text("one")
    monkeypatch.setattr(catalogue, "__file__", str(home / "catalogue.py"))
    states = [before, catalogue._state()]
    for change in (
        lambda: (home / "method.py").write_text("other"),
        lambda: (home / "more.json").write_text("{}"),
        lambda: (home / "more.json").unlink(),
        lambda: monkeypatch.setattr(sys, "version", "3.99"),
    ):
        change()
        states.append(catalogue._state())
    assert len(set(states)) == len(states) - 1  # a file that is gone again leaves no trace


@pytest.mark.parametrize("reason", ["plug-in", "data sets"])
def test_what_may_depend_on_more_is_never_kept(reason, monkeypatch, tmp_path):
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    monkeypatch.setattr(registry, "loaded", lambda: False)
    if reason == "plug-in":
        monkeypatch.setattr(catalogue, "entry_points", lambda group: [group])
    catalogue.catalogue("method" if reason == "plug-in" else "dataset")
    assert not (tmp_path / "catalogue").exists()


def test_a_cache_that_cannot_be_written_costs_no_more_than_time(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(registry, "loaded", lambda: False)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [])
    assert [row["name"] for row in catalogue.catalogue("metric")] == registry.names("metric")
