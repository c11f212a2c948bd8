"""Cautions in words: coarse activation maps, untrained networks, scores that are all equal, six pictures."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from heatproof import registry
from heatproof.cli import app
from heatproof.models import load
from heatproof.models._support.undecided import undecided
from heatproof.registry import find
from heatproof.results.cautions import cautions
from heatproof.results.run_info import run_info
from heatproof.run import premises
from heatproof.run.shards import shards
from heatproof.spec.study import Study
from heatproof.types import Batch, Model, View

CAMS = ("grad_cam", "grad_cam_pp", "layer_cam", "score_cam", "hires_cam", "xgrad_cam", "eigen_cam", "finer_cam")


def convolutions(side: int, pixels: int = 16) -> Model:
    """The pixels of a side make `side` places."""
    torch.manual_seed(0)
    stride = pixels // side
    network = nn.Sequential(nn.Conv2d(3, 4, stride, stride), nn.ReLU(), nn.Flatten(), nn.Linear(4 * side * side, 5))
    return Model("small", network, view=View(pixels), cam_layer="1")


def batch(side: int = 16) -> Batch:
    return Batch(torch.rand(1, 3, side, side), torch.zeros(1, dtype=torch.int64), ("a",))


@pytest.mark.parametrize("name", [*CAMS, "shapley_cam", "ablation_cam"])
def test_a_map_of_few_places_is_named(name: str) -> None:
    method = registry.find("method", name)
    assert "2×2 places" in premises.cautions(method, convolutions(2), batch())
    assert not premises.cautions(method, convolutions(8), batch())
    wrapped = registry.find("method", "smoothgrad", method=method)
    assert "2×2 places" in premises.cautions(wrapped, convolutions(2), batch())


def test_an_even_answer_is_named_and_a_trained_one_is_not() -> None:
    small = convolutions(2)
    assert "0.1 %" in undecided(small, torch.randn(8, 1000, generator=torch.Generator().manual_seed(0)) * 0.3)
    assert not undecided(small, torch.tensor([[4.0, 0, 0, 0, 0]]))
    assert not undecided(small, torch.zeros(0, 10))
    value = Model("value", nn.Sequential(nn.Flatten(), nn.Linear(768, 1)), view=View(16), output="regression")
    assert not undecided(value, torch.zeros(8, 1))
    trained, untrained = load("embedded:object"), load("torchvision:resnet18@random")
    shown = find("dataset", "two_factor", count=8).batch(range(8)).images
    with torch.no_grad():
        assert "alike on all pictures" in undecided(untrained, untrained(shown))
        # A trained one may be sure of the same answer.
        assert not undecided(trained, trained(shown[:1].repeat(8, 1, 1, 1)))


def test_a_run_warns_before_it_works() -> None:
    study = Study([convolutions(2, 64)], ["two_factor(count=2)"], ["grad_cam", "saliency"], ["sparseness"])
    work = shards(study, torch.device("cpu"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert premises.check(work, lambda shard: False) == []
    messages = [str(one.message) for one in caught]
    assert any(words.startswith("grad_cam: the layer '1' has 2×2 places") for words in messages)
    assert any(words.startswith("small on two_factor(count=2): its highest probability") for words in messages)


def scored(values: np.ndarray, count: int) -> list[str]:
    """The cautions of two methods and a control; `values` are those of the methods."""
    rows = [
        {"dataset": "d", "model": "m", "method": method, "metric": "srg", "image": f"{at}", "value": value}
        for method, column in zip(("a", "b", "random"), (*values, np.arange(count)), strict=True)
        for at, value in enumerate(column)
    ]
    info = {"metrics": {"srg": {"higher_is_better": True}}, "methods": {"random": {"control": True}}}
    return cautions(pd.DataFrame(rows), run_info(info))


def test_six_pictures_and_equal_scores_are_named() -> None:
    rng = np.random.default_rng(0)
    (few,) = scored(rng.normal(size=(2, 6)), 6)
    assert few.startswith("6 pictures of d under m")
    assert scored(rng.normal(size=(2, 12)), 12) == []
    (equal,) = scored(np.zeros((2, 12)), 12)
    assert equal.startswith("All scores under srg (m on d) are 0:")
    assert scored(np.stack([np.zeros(12), np.arange(12.0)]), 12) == []


def test_the_terminal_and_the_report_say_so(tmp_path: Path) -> None:
    words = ["run", "--metrics", "sparseness,srg", "--methods", "saliency,random", "--limit", "6", "--quiet"]
    answer = CliRunner().invoke(app, [*words, "--out", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "Caution: 6 pictures of two_factor under embedded:object" in answer.output
    assert "6 pictures of two_factor under embedded:object: so few" in (tmp_path / "report.html").read_text()
