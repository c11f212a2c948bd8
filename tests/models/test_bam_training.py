"""A person's own copy of BAM's models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from typer.testing import CliRunner

from heatproof import models
from heatproof.cli import app
from heatproof.data.folder import Folder
from heatproof.errors import BadInput, BadModel
from heatproof.models import bam_training
from heatproof.models.bam_training import Recipe, batch_of, estimate, learn, train
from heatproof.types import View

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
    message = json.loads(out.with_suffix(".json").read_text())
    assert message["classes"] == 2
    assert message["recipe"]["steps"] == 1
    model = models.load(f"torchvision:resnet50@{out}")
    assert model(torch.rand(1, 3, 64, 64)).shape == (1, 2)


def test_the_cost_is_an_estimate_from_steps_that_were_measured(tmp_path: Path) -> None:
    assert estimate(7200, 0.5) == "estimate: 7200 steps × 0.50 s measured per step = 1.0 hours"
    assert estimate(60, 2.0).endswith("= 2 minutes")
    message: list[str] = []
    short = Recipe(epochs=8, batch=4, size=32)
    train(pictures(tmp_path / "train", 2), tmp_path / "own.safetensors", short, "random", "cpu", message.append)
    assert [one for one in message if one.startswith("estimate: 8 steps")]


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
    message = " ".join(CliRunner().invoke(app, ["train", "--help"]).output.split())
    assert "cost is an estimate, passes times the measured time of a pass" in message


def test_one_class_cannot_be_distinguished_from_others(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="one sub-folder of pictures per class"):
        train(pictures(tmp_path / "train", 1), tmp_path / "own.safetensors", RECIPE, "random", "cpu", lambda _: None)


@pytest.mark.parametrize("name", ["epochs", "batch", "size", "steps"])
def test_nothing_is_trained_for_no_steps(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} must be at least 1, got 0"):
        Recipe(**{name: 0})


def test_weights_that_are_not_there_are_named(tmp_path: Path) -> None:
    folder, out = pictures(tmp_path / "train", 2), tmp_path / "own.safetensors"
    with pytest.raises(BadModel, match=r"no weights file nothere\.pth"):
        train(folder, out, RECIPE, "nothere.pth", "cpu", lambda _: None)


def test_training_goes_on_from_what_it_had_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken off after two of four steps: the weights are those of training in one go, and nothing is left over."""
    folder, recipe = pictures(tmp_path / "train", 2), Recipe(epochs=2, batch=2, size=32)
    whole = train(folder, tmp_path / "whole.safetensors", recipe, "random", "cpu", lambda _: None)
    monkeypatch.setattr(bam_training, "WRITE_EVERY", 0.0)
    learnt: list[int] = []

    def breaking(*arguments: Any) -> torch.Tensor:
        if len(learnt) == 2:
            raise KeyboardInterrupt
        learnt.append(1)
        return learn(*arguments)

    parted = tmp_path / "parted.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(bam_training, "learn", breaking)
        with pytest.raises(KeyboardInterrupt):
            train(folder, parted, recipe, "random", "cpu", lambda _: None)
    with pytest.raises(BadInput, match=r"got one of other settings \(recipe\)"):
        train(folder, parted, Recipe(epochs=3, batch=2, size=32), "random", "cpu", lambda _: None)
    message: list[str] = []
    train(folder, parted, recipe, "random", "cpu", message.append)
    assert message[0].startswith("resuming after step 2 of 4")
    one, other = load_file(whole), load_file(parted)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not list(tmp_path.glob("parted.part*")) + list(tmp_path.glob("*.beside"))


def test_a_picture_that_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "train", 2)
    recipe = Recipe(batch=4, size=64, steps=1)
    whole = bam_training.batch_of(Folder(str(folder), View(64)), 0, 1, recipe)
    (folder / "bird" / "1.png").write_bytes(b"not a picture")
    some = bam_training.batch_of(Folder(str(folder), View(64)), 0, 1, recipe)
    assert set(whole.ids) - set(some.ids) == {"bird/1.png"}
    # The others are mirrored or not as they would have been.
    for row, name in enumerate(some.ids):
        assert torch.equal(some.images[row], whole.images[whole.ids.index(name)])
    message: list[str] = []
    train(folder, tmp_path / "own.safetensors", recipe, "random", "cpu", message.append)
    assert any(one.startswith("left out: bird/1.png") for one in message)


def test_every_epoch_shows_all_pictures_in_an_order_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    pictures(folder, 2)
    for i in range(2, 8):
        Image.fromarray(np.full((40, 40, 3), i, np.uint8)).save(folder / "dog" / f"{i}.png")
    data, recipe = Folder(str(folder), View(32)), Recipe(batch=5, size=32)
    epochs = [[one for step in (2 * e, 2 * e + 1) for one in batch_of(data, step, 2, recipe).ids] for e in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(data.ids())
    assert epochs[0] != epochs[1]
