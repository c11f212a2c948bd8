"""Every method on some fifty architectures: it works, alone as in a batch, or says why not."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from networks import batch, small_cnn
from torch import Tensor

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.types import Batch, Model

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("architectures", ROOT / "benchmarks" / "architectures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_has_a_row_for_every_architecture(benchmark: Any) -> None:
    text = (ROOT / "docs" / "architectures.md").read_text()
    listed = set(re.findall(r"^\| ([^|`]+?) \|", text, re.MULTILINE)) - {"architecture"}
    assert listed == {one.name for one in benchmark.all_of_them()}
    assert len(listed) >= 30


def test_what_a_method_does_wrong_is_found(benchmark: Any) -> None:
    model, pictures = small_cnn(), batch(3)

    def by_its_mates(model: Model, batch: Batch) -> Tensor:
        return batch.images.mean(1) - batch.images.mean()

    def broken(model: Model, batch: Batch) -> Tensor:
        raise KeyError("oops")

    def refusing(model: Model, batch: Batch) -> Tensor:
        raise NotApplicable("not this one")

    assert "moves by" in benchmark.outcome(model, pictures, by_its_mates)
    assert benchmark.outcome(model, pictures, by_its_mates, exact=False) == ""
    assert benchmark.outcome(model, pictures, broken) == "error: KeyError: 'oops'"
    assert benchmark.outcome(model, pictures, refusing) == "not this one"


@pytest.mark.slow
def test_every_method_works_on_every_architecture_or_says_why_not(benchmark: Any) -> None:
    import_torchvision("this test")
    methods = benchmark.chosen_methods()
    with engine.use(engine.Engine(measure=False)):
        for architecture in benchmark.all_of_them():
            torch.manual_seed(0)
            for method, why in benchmark.row_of(architecture, methods).items():
                assert not why.startswith(benchmark.ERROR), (architecture.name, method, why)
