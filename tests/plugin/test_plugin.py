"""A package from outside brings a component of every kind, and heatproof knows all it declares."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from plugin.package import install

BRINGS = {
    "methods": "sunlight",
    "metrics": "warmth",
    "imputers": "sky",
    "segmenters": "halves",
    "datasets": "days",
    "protocols": "summer",
    "models": "weather",
}
CHECKS = """
import json
from heatproof import registry, testing

found = {
    name: [f"{verdict}" for verdict in testing.check(name) if not verdict.holds]
    for kind in registry.KINDS if kind != "part"
    for name in registry.names(kind) if registry.entry(kind, name).make.__module__.startswith("sunny")
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("site"))


def python(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    places = os.pathsep.join([str(path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )


def heatproof(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python(path, "-m", "heatproof.cli", *words)


@pytest.fixture(scope="module")
def run(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "run"
    done = heatproof(path, "run", "--protocols", "summer", "--out", str(out), "--on", "backwards")
    assert done.returncode == 0, done.stderr
    return out


def test_every_kind_is_listed_and_keeps_its_promises(path: Path) -> None:
    checked = python(path, "-c", CHECKS)
    assert json.loads(checked.stdout) == {name: [] for name in BRINGS.values()}, checked.stderr
    listed = heatproof(path, "list", "models", "--json")
    assert "weather" in [row["name"] for row in json.loads(listed.stdout)], listed.stderr


def test_its_protocol_runs_and_its_metric_brings_axes_and_details(run: Path) -> None:
    info = json.loads((run / "info.json").read_text())
    about = info.get("value", info)
    assert about["metrics"]["warmth"]["axes"] == ["hours of sun", "warmth of the map"]
    assert about["methods"]["sunlight"]["normalisation"] == "min_max"
    scores, details = (pd.read_parquet(run / f"{name}.parquet") for name in ("scores", "details"))
    assert set(scores["metric"]) == {"warmth", "srg(occlusion=sky/halves, points=2)"}
    assert (scores["status"] == "ok").all()
    assert set(details.loc[details["metric"] == "warmth", "detail"]) == {"spread"}


def test_its_section_stands_in_the_report(run: Path) -> None:
    page = (run / "report.html").read_text()
    warm = pd.read_parquet(run / "scores.parquet").query("metric == 'warmth'")["value"].max()
    assert f"It was {warm:.3f} warm." in page
    assert "hours of sun" in page


def test_its_run_is_stored_by_names_and_replays(path: Path, run: Path, tmp_path: Path) -> None:
    stored = (run / "study.json").read_text()
    assert '"class"' not in stored
    assert '"part": "window"' in stored
    again = heatproof(path, "run", str(run / "study.json"), "--out", str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    first, second = (
        pd.read_parquet(out / "scores.parquet").drop(columns="seconds") for out in (run, tmp_path / "again")
    )
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_its_command_is_one_of_heatproofs(path: Path) -> None:
    assert "sunshine" in heatproof(path, "--help").stdout
    assert heatproof(path, "sunshine", "--hours", "5").stdout == "5 hours of sun\n"


def test_an_unknown_executor_is_named_with_the_nearest(path: Path, tmp_path: Path) -> None:
    wrong = heatproof(path, "run", "--protocols", "summer", "--out", str(tmp_path), "--on", "backward")
    assert wrong.returncode == 2
    assert "Did you mean 'backwards'?" in wrong.stderr


def test_without_the_package_nothing_of_it_is_known(tmp_path: Path) -> None:
    assert "sunshine" not in heatproof(tmp_path, "--help").stdout
