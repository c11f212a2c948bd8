"""A person's own copy of BAM's models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from heatproof import models
from heatproof.cli import app
from heatproof.errors import BadInput
from heatproof.models.bam_training import Recipe, estimate, train

RECIPE = Recipe(batch=2, size=64, steps=1)


def pictures(root: Path, classes: int) -> Path:
    for name in ["bird", "dog"][:classes]:
        (root / name).mkdir(parents=True)
        for i in range(2):
            noise = np.random.default_rng(i).integers(0, 256, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(noise).save(root / name / f"{i}.png")
    return root


def test_what_was_trained_is_read_back_as_a_torchvision_model(tmp_path: Path) -> None:
    out = train(pictures(tmp_path / "train", 2), tmp_path / "own.safetensors", RECIPE, "random", "cpu", lambda _: None)
    told = json.loads(out.with_suffix(".json").read_text())
    assert told["classes"] == 2
    assert told["recipe"]["steps"] == 1
    model = models.load(f"torchvision:resnet50@{out}")
    assert model(torch.rand(1, 3, 64, 64)).shape == (1, 2)


def test_the_cost_is_an_estimate_from_steps_that_were_measured(tmp_path: Path) -> None:
    assert estimate(7200, 0.5) == "estimate: 7200 steps × 0.50 s measured per step = 1.0 hours"
    assert estimate(60, 2.0).endswith("= 2 minutes")
    said: list[str] = []
    short = Recipe(epochs=8, batch=4, size=32)
    train(pictures(tmp_path / "train", 2), tmp_path / "own.safetensors", short, "random", "cpu", said.append)
    assert [one for one in said if one.startswith("estimate: 8 steps")]


def test_the_command_trains_says_its_cost_and_names_what_is_lacking(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "train", 2)
    out = tmp_path / "own.safetensors"
    words = ["train", "bam", "--data", str(folder), "--weights", "random", "--steps", "1"]
    done = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert out.is_file()
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "needs --data" in refused.output
    told = " ".join(CliRunner().invoke(app, ["train", "--help"]).output.split())
    assert "cost is an estimate, passes times the measured time of a pass" in told


def test_one_class_cannot_be_told_from_others(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="one sub-folder of pictures per class"):
        train(pictures(tmp_path / "train", 1), tmp_path / "own.safetensors", RECIPE, "random", "cpu", lambda _: None)
