"""Methods whose maps rounding moves visibly are marked in the run that shows it, and others are not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from networks import small_cnn
from torch import Tensor

from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.methods.saliency import Saliency
from heatproof.metrics.sparseness import Sparseness
from heatproof.results import Results
from heatproof.run.loop import run
from heatproof.spec.study import Study
from heatproof.stability import UNSTABLE
from heatproof.types import Batch, Model


def forking(model: Model, batch: Batch) -> Tensor:
    """The logistic map from the model's answer: after 60 steps nothing is left of its last digits."""
    value = model(batch.images).softmax(1).max(1).values[:, None, None]
    maps = []
    for _ in range(60):
        value = 4 * value * (1 - value)
        maps.append(value)
    return torch.cat(maps, 2).expand(-1, batch.images.shape[2], -1).repeat(1, 1, 2)[..., : batch.images.shape[3]]


def jittered(model: Model, batch: Batch) -> Tensor:
    """Another precision of the picture would draw other noise, which is no instability."""
    dice = torch.Generator().manual_seed(batch.seed)
    noise = torch.randn(batch.images.shape, generator=dice, dtype=batch.images.dtype)
    return Saliency()(model, batch) + noise.mean(1)


def judged(out: Path, count: int) -> Results:
    methods = [Saliency(), forking, jittered, "edges", "rise(masks=300)"]
    return run(Study([small_cnn()], [TwoFactor(count=count)], methods, [Sparseness()], repeats=0), out)


def test_maps_are_made_again_in_double_precision(tmp_path: Path) -> None:
    results = judged(tmp_path, 16)
    stable, wild, noisy, blind, dear = results.info.methods.values()
    assert (stable.unstable, wild.unstable, noisy.unstable) == (False, True, False)
    assert 0 < stable.float_noise < UNSTABLE < wild.float_noise
    assert noisy.float_noise < UNSTABLE
    assert blind.float_noise is dear.float_noise is None  # a control, and a mean over 300 passes
    shown = results.details[results.details["detail"] == "float_noise"]
    assert list(shown["image"].unique()) == [TwoFactor(count=1).ids()[0]]
    assert sorted(shown["value"]) == pytest.approx(sorted([stable.float_noise, wild.float_noise, noisy.float_noise]))


def test_of_few_pictures_none_is_explained_again(tmp_path: Path) -> None:
    assert {one.float_noise for one in judged(tmp_path, 15).info.methods.values()} == {None}
