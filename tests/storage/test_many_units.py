"""Many units: few files, found again from footers, gathered and ranked."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from heatproof.results import Results
from heatproof.run import parts, store
from heatproof.run.store import Store

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "store.py"
PICTURES = 48  # × 12 methods × 30 metrics in shards of 16: 1,080 units


@pytest.fixture(scope="module")
def invented() -> ModuleType:
    spec = importlib.util.spec_from_file_location("invented_units", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_many_units_are_few_files_and_are_found_without_reading_rows(
    invented: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "NUMBERS", 2**17)  # as if there were eight times as many
    monkeypatch.setattr(store, "SOON", 1e6)  # however slow the machine is
    invented.fill(tmp_path, PICTURES)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert 3 * 2 < len(files) <= 3 * 5 + 1  # scores, curves and details, and one with the pictures
    with monkeypatch.context() as patch:
        patch.delattr(parts.part, "read")  # resuming never gets there
        invented.resume(tmp_path, PICTURES)
    invented.gather(tmp_path, PICTURES)
    results = Results.load(tmp_path)
    assert len(results.scores) == PICTURES * 12 * 30
    assert len(results.curves) == len(results.details) == PICTURES * 12 * 15
    kept = Store(tmp_path)
    place, key, ids = next(invented.units(PICTURES))
    unit = kept.get(key, ids)
    assert unit is not None
    table = results.scores
    rows = table[(table["method"] == place["method"]) & (table["metric"] == place["metric"])].head(len(ids))
    assert rows["image"].tolist() == list(ids)
    assert rows["value"].tolist() == unit.values
    means = results.scores.groupby("method")["value"].mean()
    assert list(means.sort_values().index[[0, -1]]) == [invented.METHODS[0], invented.METHODS[-1]]
