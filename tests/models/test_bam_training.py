"""A person's own copy of BAM's models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from heatproof import models
from heatproof.errors import BadInput
from heatproof.models.bam_training import Recipe, train

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


def test_one_class_cannot_be_told_from_others(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="one sub-folder of pictures per class"):
        train(pictures(tmp_path / "train", 1), tmp_path / "own.safetensors", RECIPE, "random", "cpu", lambda _: None)
