"""What trackers are given of a finished run."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

import heatproof
from heatproof import loggers
from heatproof.cli import app
from heatproof.errors import BadInput, UnknownName
from heatproof.results import Results


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("run")
    study = heatproof.Study(["embedded:object"], ["two_factor(count=6)"], ["saliency", "edges"], ["pointing_game"])
    heatproof.report(heatproof.run(study, where), where / "report.html")
    return where


def test_tensorboard_has_the_means_and_the_table(out: Path) -> None:
    answer = CliRunner().invoke(app, ["report", str(out), "--log", "tensorboard"])
    assert answer.exit_code == 0, answer.output
    found = EventAccumulator(str(out / "tensorboard"))
    found.Reload()
    table = Results.load(out).ranking("pointing_game").table.set_index("method")
    for method in ("saliency", "edges"):
        (point,) = found.Scalars(f"pointing_game/{method}")
        assert point.value == pytest.approx(table.loc[method, "mean"])
    assert {"run/text_summary", "rankings/text_summary"} <= set(found.Tags()["tensors"])


def test_mlflow_gets_parameters_metrics_and_artifacts(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[str, Any] = {}
    client: Any = ModuleType("mlflow")
    client.start_run = lambda run_name: nullcontext(calls.update(name=run_name))
    for name in ("log_params", "log_metrics", "log_artifact"):
        setattr(client, name, lambda given, name=name: calls.update({name: given}))
    client.log_text = lambda text, file: calls.update({file: text})
    monkeypatch.setitem(sys.modules, "mlflow", client)
    monkeypatch.setattr(loggers, "find_spec", lambda name: True)
    loggers.log("mlflow", Results.load(out), out)
    assert calls["name"] == out.name
    assert calls["log_params"]["models"] == "embedded:object"
    assert {"pointing_game/saliency", "pointing_game/saliency low"} <= set(calls["log_metrics"])
    assert calls["rankings.csv"].startswith("dataset,model,metric")
    assert calls["log_artifact"] == str(out / "report.html")


def test_an_unknown_tracker_and_a_missing_client_are_named_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownName, match="tensorboard"):
        loggers.check("tensorbord")
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="--log wandb needs its client: pip install wandb"):
        loggers.check("wandb")
    answer = CliRunner().invoke(
        app, ["run", "--limit", "1", "--metrics", "srg", "--log", "wandb", "--out", str(tmp_path)]
    )
    assert answer.exit_code == 2
    assert not list(tmp_path.iterdir())
