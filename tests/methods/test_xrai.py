"""XRAI against PAIR's own code."""

from __future__ import annotations

import importlib

import networks
import numpy as np
import pytest
import torch

from heatproof import engine
from heatproof.methods._support.region_ranking import rank_regions
from heatproof.methods.integrated_gradients import integrate
from heatproof.methods.xrai import XRAI


def blocks(count: int) -> torch.Tensor:
    """224-pixel pictures with clear regions: few masks, so that the reference takes seconds."""
    coarse = torch.rand(count, 3, 5, 5, generator=torch.Generator().manual_seed(4))
    grain = torch.rand(count, 3, 224, 224, generator=torch.Generator().manual_seed(5))
    return 0.95 * torch.nn.functional.interpolate(coarse, (224, 224)) + 0.05 * grain


def test_its_regions_and_ranking_are_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    saliency = importlib.import_module("saliency.core")
    monkeypatch.setattr(saliency.xrai, "_FELZENSZWALB_SCALE_VALUES", [100, 500])
    image = blocks(1)[0].permute(1, 2, 0).numpy()
    attribution = np.random.default_rng(0).normal(size=image.shape)
    theirs = saliency.XRAI().GetMask(image, None, base_attribution=attribution)
    ours = rank_regions(attribution.max(2), XRAI(scales=(100, 500))._regions(image), 50)
    same = np.abs(ours - theirs) < 1e-9
    assert same.mean() > 0.999


def test_the_whole_of_it_agrees_with_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    saliency = importlib.import_module("saliency.core")
    monkeypatch.setattr(saliency.xrai, "_FELZENSZWALB_SCALE_VALUES", [500])
    model = networks.small_cnn()
    batch = networks.batch(1).select([0])
    batch = type(batch)(blocks(1), batch.targets, batch.ids)

    def slopes(pictures: np.ndarray, call_model_args: int, expected_keys: object) -> dict[str, np.ndarray]:
        images = torch.from_numpy(pictures).permute(0, 3, 1, 2).float()
        found = engine.gradient(model, images, torch.full((len(images),), call_model_args))[0]
        return {"INPUT_OUTPUT_GRADIENTS": found.permute(0, 2, 3, 1).numpy()}

    settings = saliency.XRAIParameters(steps=24)
    picture = batch.images[0].permute(1, 2, 0).numpy()
    theirs = saliency.XRAI().GetMask(picture, slopes, int(batch.targets[0]), extra_parameters=settings, batch_size=8)
    ours = XRAI(steps=24, scales=(500,))(model, batch)[0].numpy()
    # Gauss-Legendre nodes against a sum over evenly spaced ones.
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.99


def test_it_integrates_from_the_darkest_and_the_brightest_value() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    method = XRAI(steps=6, channel_pooling="sum")
    dark, bright = (
        end(batch.images, (1, 2, 3), keepdim=True).expand_as(batch.images) for end in (torch.amin, torch.amax)
    )
    expected = sum(integrate(model, batch, end, 6, "logit") for end in (dark, bright)) / 2
    assert torch.allclose(method._attribution(model, batch), expected.sum(1), atol=1e-6)
    maps = method(model, batch)
    assert all(3 <= len(one.unique()) < 500 for one in maps)  # regions, not pixels
