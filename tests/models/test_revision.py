"""A model's revision changes with everything its answers depend on, and with nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heatproof import models
from heatproof.types import Model


@dataclass
class Config:
    """Settings as many keep them."""

    temperature: float = 1.0


class Tempered(nn.Module):
    """A network with things that torch does not store."""

    def __init__(self, **held: Any) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(12, 3, bias=False))
        nn.init.ones_(self.inner[1].weight)  # type: ignore[arg-type]
        self.register_buffer("shift", held.pop("shift", torch.zeros(3)), persistent=False)
        for name, value in held.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        self.last = x
        return self.inner(x) + self.shift


def revision(**held: Any) -> str:
    return Model("tempered", Tempered(**held)).revision


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"temperature": 1.0}, {"temperature": 30.0}),
        ({"classes": 1}, {"classes": 2}),
        ({"mode": "a"}, {"mode": "b"}),
        ({"flag": True}, {"flag": False}),
        ({"sizes": (1, 2)}, {"sizes": (1, 3)}),
        ({"sizes": [1, {"a": 2}]}, {"sizes": [1, {"a": 3}]}),
        ({"table": torch.zeros(2)}, {"table": torch.tensor([0.0, 1e-7])}),
        ({"table": np.zeros(2)}, {"table": np.array([0.0, 1.0])}),
        ({"config": Config()}, {"config": Config(30.0)}),
        ({"shift": torch.zeros(3)}, {"shift": torch.ones(3)}),
        ({"hidden": [nn.Linear(2, 2)]}, {"hidden": [nn.Linear(2, 2)]}),  # two draws
        ({}, {"temperature": 1.0}),
    ],
)
def test_what_user_defined_layers_hold_counts(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert revision(**before) == revision(**before)
    assert revision(**before) != revision(**after)


def test_a_value_that_holds_itself_does_not_hang() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert revision(loop=loop) == revision(loop=loop)


def test_changes_in_place_are_seen_and_passes_are_none() -> None:
    model = Model("tempered", Tempered(temperature=1.0))
    first = model.revision
    model(torch.rand(2, 3, 2, 2))  # leaves a tensor in an attribute
    assert model.revision == first
    model.network.temperature = 30.0  # type: ignore[assignment]
    second = model.revision
    with torch.no_grad():
        model.network.inner[1].weight.mul_(2)  # type: ignore[index]
    third = model.revision
    model.network.inner[1].weight.data.mul_(2)  # type: ignore[index]
    assert len({first, second, third, model.revision}) == 4


def test_the_temperature_in_a_file_beside_the_network_counts(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import json, pathlib, torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        config = json.loads((pathlib.Path(__file__).parent / 'config.json').read_text())\n"
        "        self.temperature = config['temperature']\n"
        "    def forward(self, x):\n"
        "        return x.mean((2, 3)) / self.temperature\n"
        "def make():\n"
        "    return Net()\n"
    )
    seen = []
    for temperature in (1, 30, 1):
        (tmp_path / "config.json").write_text(f'{{"temperature": {temperature}}}')
        seen.append(models.load(f"{tmp_path}/net.py:make").revision)
    assert seen[0] == seen[2] != seen[1]


def test_networks_of_libraries_keep_the_revisions_that_runs_were_stored_under() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    for parameter in network.parameters():
        nn.init.constant_(parameter, 0.5)
    assert Model("plain", network).revision == "944ba2d4303b9636"
