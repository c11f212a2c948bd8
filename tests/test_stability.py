"""Methods that amplify float noise are known by measurement, and marked wherever methods are named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from heatproof import engine, models, registry
from heatproof.audit.float_noise import float_noise, relative_difference
from heatproof.cli import app
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.spec.parse import parse
from heatproof.stability import UNSTABLE, is_unstable, measured
from heatproof.types import Batch, Maps, Model

UNMEASURED = {"bcos", "precomputed", "mean_region"}  # they need another model, files or data


@dataclass(frozen=True)
class Declared:
    """A plug-in's method that says so itself."""

    unstable: ClassVar[bool] = True

    def __call__(self, model: Model, batch: Batch) -> Maps:
        return batch.images.mean(1)


@dataclass(frozen=True)
class Calmed:
    """A plug-in's method around an unstable one that says it is stable."""

    method: object
    unstable: ClassVar[bool] = False


def test_every_method_was_measured() -> None:
    built_in = {name for name in registry.names("method") if _home(name).startswith("heatproof.")}
    assert built_in - set(measured()) <= UNMEASURED
    assert set(measured()) <= built_in


def _home(name: str) -> str:
    return registry.entry("method", name).make.__module__


@pytest.mark.parametrize("name", ["guided_ig", "isa", "agi"])
def test_methods_known_to_be_unstable_are_marked(name: str) -> None:
    assert is_unstable(parse("method", name))
    assert is_unstable(parse("method", f"smoothgrad(method={name})"))


@pytest.mark.parametrize("name", ["saliency", "lrp", "grad_cam", "integrated_gradients", "kernel_shap", "random"])
def test_others_are_not(name: str) -> None:
    assert not is_unstable(parse("method", name))


def test_a_declaration_counts_for_more_than_a_measurement() -> None:
    assert is_unstable(Declared())
    assert not is_unstable(Calmed(parse("method", "isa")))
    assert not is_unstable(lambda model, batch: batch.images.mean(1))


@pytest.mark.parametrize(
    ("method", "unstable"),
    [("guided_ig(steps=20)", True), ("isa(rounds=8)", True), ("saliency", False), ("lrp", False)],
)
def test_measuring_again_finds_the_same(method: str, unstable: bool) -> None:
    model = models.load("embedded:object")
    batch = TwoFactor(count=6).batch(range(6))
    before = engine.current().record()
    assert (float_noise(model, batch, parse("method", method)) > UNSTABLE) is unstable
    assert engine.current().record() == before


@given(scale=st.floats(1e-3, 1e3), noise=st.floats(1e-9, 1.0))
def test_the_difference_is_relative_to_the_map(scale: float, noise: float) -> None:
    maps = torch.ones(2, 4, 4, dtype=torch.float64)
    moved = maps.clone()
    moved[1] *= 1 - noise
    assert relative_difference(scale * maps, scale * moved) == pytest.approx(noise, rel=1e-5, abs=1e-12)
    assert relative_difference(maps, maps) == relative_difference(0 * maps, 0 * maps) == 0


def test_the_listing_marks_them() -> None:
    rows = json.loads(CliRunner().invoke(app, ["list", "methods", "--json"]).stdout)
    marked = {row["name"] for row in rows if row["unstable"]}
    assert marked == {name for name, noise in measured().items() if noise > UNSTABLE}
    page = CliRunner().invoke(app, ["list", "methods"]).stdout
    assert "† numerically unstable" in page
    lines = {line.split()[0]: line for line in page.splitlines() if line[:1].isalpha()}
    assert "†" in lines["guided_ig"]
    assert "†" not in lines["saliency"]
