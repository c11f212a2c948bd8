"""The embedded transformers: what they answer, where they look, and that the page about them is of today's methods."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from heatproof import models
from heatproof.attribute import attribute
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.models import embedded
from heatproof.models.embedded_networks import HybridViT, ResNet
from heatproof.models.embedded_training import begin_like
from heatproof.spec.parse import parse

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page() -> Any:
    spec = importlib.util.spec_from_file_location("blind_guess", ROOT / "benchmarks" / "blind_guess.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_every_method_and_control(page: Any) -> None:
    text = (ROOT / "docs" / "transformers.md").read_text()
    measured = re.findall(r"^## `embedded:(\w+)`", text, re.MULTILINE)
    assert "scene_vit" in measured
    for name in measured:
        metrics = page.MODELS[name]
        part = text.partition(f"## `embedded:{name}`")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE)
        assert sorted(rows) == sorted((*page.METHODS, *page.CONTROLS) * len(metrics))


def test_a_transformer_knows_the_objects() -> None:
    model, pictures = models.load("embedded:object_vit"), TwoFactor("held_out", 40).batch(range(40))
    with torch.no_grad():
        right = model(pictures.images).argmax(1) == pictures.targets
    assert embedded.about("object_vit")["accuracy"]["composite"] > 0.9
    assert float(right.float().mean()) > 0.9


@pytest.mark.parametrize("method", ["attn_lrp", "legrad", "generic_attention"])
def test_its_maps_are_higher_on_the_object_than_beside_it(method: str) -> None:
    model, pictures = models.load("embedded:object_vit"), TwoFactor("held_out", 20).batch(range(20))
    maps, inside = attribute(model, pictures, parse("method", method)).maps, pictures.regions
    assert inside is not None
    on, beside = ((maps * where).sum((1, 2)) / where.sum((1, 2)) for where in (inside, ~inside))
    assert float((on > beside).float().mean()) > 0.7


def test_layers_of_a_trained_network_are_taken_over_by_name_and_held() -> None:
    torch.manual_seed(0)
    network, trained = HybridViT(), ResNet()
    begin_like(network, trained)
    taken = {"stem", "layer1", "layer2"}
    for name, layer in network.named_children():
        assert all(parameter.requires_grad == (name not in taken) for parameter in layer.parameters())
    assert torch.equal(network.layer2.conv1.weight, trained.layer2.conv1.weight)
