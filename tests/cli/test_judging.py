"""`heatproof judge` and `heatproof.judge`: every protocol that applies, with one line-up."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner

import heatproof
from heatproof.cli import app

FACTORY = """
import torch
from torch import nn

def factory():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 5))

factory.size = 32
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "photos").mkdir()
    for i in range(2):
        pixels = np.random.default_rng(i).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i}.png")
    (tmp_path / "mine.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_judge_says_what_it_will_do_and_leaves_a_report(home: Path) -> None:
    words = ["judge", "mine.py:factory", "photos", "--methods", "saliency,grad_cam", "--limit", "1", "--out", "run"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code in (0, 1), found.output
    assert "2 methods, the same in every protocol: saliency, grad_cam" in found.output
    assert "pixel_flipping: mine.py:factory on photos" in found.output
    assert "Left out: threshold_free needs a mask" in found.output
    results = heatproof.Results.load(home / "run")
    assert results.info.protocols == ("pixel_flipping", "robustness", "sanity")
    assert set(results.info.left_out) == {"in_distribution", "mosaics", "relative_importance", "threshold_free"}
    assert (home / "run" / "report.html").is_file()


def test_judge_is_run_with_all_protocols(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[list[dict[str, Any]]] = []
    for command in ("judge", "run"):
        module = importlib.import_module(f"heatproof.cli.{command}")
        monkeypatch.setattr(
            module, "run_and_report", lambda studies, *_, **__: run.append([s.plain() for s in studies])
        )
    common = ["--methods", "saliency", "--limit", "1", "--seed", "3"]
    whole = ["run", "--model", "mine.py:factory", "--images", "photos", "--protocols", "all", *common]
    for words in (["judge", "mine.py:factory", "photos", *common], whole):
        found = CliRunner().invoke(app, words)
        assert found.exit_code == 0, found.output
    assert run[0] == run[1]
    assert {one["protocol"] for one in run[0]} == {"pixel_flipping", "robustness", "sanity"}


def test_in_python_a_network_and_a_folder_are_enough(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heatproof.judge import studies

    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 3))
    (first, *_) = studies(heatproof.Model("mine", network, view=heatproof.View(32)), home / "photos", pictures=1)
    assert first.limit == 1
    with pytest.raises(heatproof.HeatproofError, match="masks"):
        studies(network, first.datasets[0], masks="photos")  # type: ignore[arg-type]


def test_maps_that_exist_are_judged_beside_methods_under_named_protocols(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    images, maps = torch.rand(3, 3, 32, 32), {"ours": torch.rand(3, 32, 32)}
    results = heatproof.judge(
        network, images, maps=maps, methods=["saliency"], protocols=["robustness(draws=2)"], pictures=2, out=tmp_path
    )
    assert {"ours", "saliency"} <= set(results.scores["method"])
    assert results.info.protocols == ("robustness",)
    mine = results.rows("single_deletion").query("method == 'ours'")["value"]
    assert len(mine) == 2
    assert mine.notna().all()
