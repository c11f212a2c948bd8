"""`heatproof list methods --for MODEL`: which methods apply to a network, and why the others do not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from networks import small_cnn
from PIL import Image
from torch import nn
from typer.testing import CliRunner

from heatproof import applies, models, registry
from heatproof.cli import app
from heatproof.traits import misfit
from heatproof.types import Model, View

FACTORY = """
from torch import nn
def value():
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1))
value.size = 16
"""
TRANSFORMERS = {"generic_attention", "attention_gradient_cam", "transformer_lrp", "attn_lrp", "legrad"}
shell = CliRunner()


def test_methods_that_do_not_apply_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text(FACTORY)
    few = {*TRANSFORMERS, "lrp", "grad_cam", "integrated_gradients", "rise", "oracle", "agi", "libra_grad"}
    monkeypatch.setattr(registry, "names", lambda kind: sorted(few))
    words = ["list", "methods", "--for", f"{tmp_path / 'net.py'}:value", "--output", "regression"]
    answer = shell.invoke(app, [*words, "--json"])
    rows = {row["name"]: row for row in json.loads(answer.stdout)}
    assert set(rows) == few
    for name in TRANSFORMERS:
        assert "no attention over tokens" in rows[name]["reason"]
    assert {"lrp", "grad_cam", "integrated_gradients", "rise", "oracle"} <= {
        name for name in rows if rows[name]["applies"]
    }
    for name, row in rows.items():
        assert row["applies"] == (not row["reason"])
        if declared := misfit(registry.find("method", name), "value"):
            assert row["reason"] == declared
    monkeypatch.setattr(applies, "methods_for", lambda _: [(name, row["reason"]) for name, row in rows.items()])
    text = shell.invoke(app, words).stdout
    assert f"{sum(row['applies'] for row in rows.values())} of {len(rows)} methods apply" in text
    assert f"not {', '.join(name for name in rows if rows[name]['reason'] == rows['legrad']['reason'])}:" in text


def test_explain_draws_all_that_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one sheet; the others are named with their reasons, and are no failure."""
    (tmp_path / "net.py").write_text(FACTORY)
    Image.new("RGB", (16, 16), (200, 30, 60)).save(tmp_path / "one.png")
    few = ["saliency", "legrad", "lrp", "random", "precomputed"]
    monkeypatch.setattr(registry, "names", lambda kind: few)
    words = ["explain", "--model", f"{tmp_path / 'net.py'}:value", "--output", "regression", "--methods", "all", "-q"]
    answer = shell.invoke(app, [*words, "--out", str(tmp_path / "maps.png"), str(tmp_path / "one.png")])
    assert answer.exit_code == 0, answer.stderr
    with np.load(tmp_path / "maps.npz") as stored:
        assert {name for name in stored if name in few} == {"saliency", "lrp"}
    assert "legrad: legrad needs a transformer" in answer.stderr
    assert "precomputed: precomputed needs path" in answer.stderr


def test_only_methods_apply_to_a_model() -> None:
    answer = shell.invoke(app, ["list", "metrics", "--for", "embedded:object"])
    assert answer.exit_code == 2
    assert "heatproof list methods --for embedded:object" in answer.stderr


def test_each_is_stopped_after_a_few_passes_and_leaves_nothing_behind() -> None:
    """Whatever a method would take in full."""
    seen: list[int] = []

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = small_cnn().network

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(len(images))
            return self.inner(images)

    model = Model("counted", Counted().eval(), view=View(32))
    model, batch = applies._posed(model)
    for name in ("rise", "kernel_shap", "integrated_gradients"):
        seen.clear()
        assert applies.reason_against(model, batch, name) == ""
        assert 0 < sum(seen) < 2 * applies.PASSES  # checks of the engine are not counted
    assert not model.network._forward_pre_hooks


def test_an_error_of_a_method_is_a_reason() -> None:
    class Odd(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if images.requires_grad:
                raise RuntimeError("no gradients here")
            return torch.stack([images.mean((1, 2, 3)), images.amax((1, 2, 3))], 1)

    model, batch = applies._posed(Model("odd", Odd(), view=View(16)))
    assert "no gradients here" in applies.reason_against(model, batch, "saliency")
    assert applies.reason_against(model, batch, "occlusion") == ""


@pytest.mark.parametrize("name", ["precomputed"])
def test_methods_that_need_files_say_so(name: str) -> None:
    model, batch = applies._posed(Model("small", small_cnn().network, view=View(32)))
    assert len(applies.reason_against(model, batch, name)) > 20


def test_a_network_whose_listing_begins_with_an_inner_layer_is_asked_with_its_own_channels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "names", lambda kind: ["attn_lrp", "saliency"])
    assert set(dict(applies.methods_for(models.load("embedded:object_vit"))).values()) == {""}
