"""Blur integrated gradients against scipy's blur and PAIR's own code."""

from __future__ import annotations

import importlib

import networks
import numpy as np
import pytest
import torch
from scipy import ndimage

from heatproof import engine
from heatproof.methods.blur_ig import BlurIG, along, blur_and_slope, blur_matrices
from heatproof.types import Model


def blurred_and_slope(images: torch.Tensor, sigma: float) -> tuple[torch.Tensor, torch.Tensor]:
    blurs = (along(torch.tensor([sigma], dtype=torch.float64), side, 0.01, images)[0] for side in images.shape[2:])
    room, slope = torch.empty_like(images), torch.empty_like(images)
    blur_and_slope(images, *blurs, room, slope)
    return room, slope


@pytest.mark.parametrize("side", [32, 31])
def test_the_matrices_blur_as_scipy_does(side: int) -> None:
    picture = networks.pictures(1, size=side)[0, 0].double().numpy()
    sigmas = torch.tensor([0.0, 0.05, 0.7, 3.0, 12.0])
    for sigma, matrix in zip(sigmas.double().tolist(), blur_matrices(sigmas, side).numpy(), strict=True):
        expected = ndimage.gaussian_filter(picture, sigma, mode="constant") if sigma else picture
        assert np.abs(matrix @ picture @ matrix - expected).max() < 1e-12


@pytest.mark.parametrize("sigma", [0.6, 4.0])
@pytest.mark.parametrize("height", [32, 21])
def test_the_slope_is_the_difference_of_two_blurs(sigma: float, height: int) -> None:
    images = networks.pictures(2)[:, :, :height].double()
    for image, shown, change in zip(images.numpy(), *blurred_and_slope(images, sigma), strict=True):
        here, there = (
            np.stack([ndimage.gaussian_filter(c, s, mode="constant") for c in image]) for s in (sigma, sigma + 0.01)
        )
        assert np.abs(shown.numpy() - here).max() < 1e-12
        assert np.abs(change.numpy() - (there - here) / 0.01).max() < 1e-9


def test_on_a_linear_model_it_is_weight_times_what_the_blur_took() -> None:
    model, batch = networks.linear(), networks.batch(2)
    batch = batch.showing(batch.images.double())
    weights = model.network.fc.weight.double().view(10, 3, 32, 32)[batch.targets]
    method = BlurIG(steps=400, max_sigma=6.0, reference_side=None)
    blurred, _ = blurred_and_slope(batch.images, 6.0)
    expected = (weights * (batch.images - blurred)).sum((1, 2, 3))
    total = method(model, batch).double().sum((1, 2))
    assert (total - expected).abs().max() < 0.02 * expected.abs().max()


@pytest.mark.parametrize("sqrt", [False, True])
def test_it_is_pairs_blur_ig(sqrt: bool) -> None:
    saliency = importlib.import_module("saliency.core")
    small = networks.small_cnn()
    model = Model("double", small.network.double(), small.mean, small.std)
    batch = networks.batch(2)
    batch = batch.showing(batch.images.double())

    def slopes(pictures: np.ndarray, call_model_args: int, expected_keys: object) -> dict[str, np.ndarray]:
        images = torch.from_numpy(pictures).permute(0, 3, 1, 2)
        found = engine.gradient(model, images, torch.full((len(images),), call_model_args))[0]
        return {"INPUT_OUTPUT_GRADIENTS": found.permute(0, 2, 3, 1).numpy()}

    method = BlurIG(steps=24, max_sigma=8.0, sqrt=sqrt, reference_side=None)
    ours = method.channels(model, batch)
    for picture, target, mine in zip(batch.images, batch.targets.tolist(), ours, strict=True):
        theirs = saliency.BlurIG().GetMask(
            picture.permute(1, 2, 0).numpy(), slopes, target, max_sigma=8.0, steps=24, sqrt=sqrt, batch_size=1
        )
        assert np.abs(mine.permute(1, 2, 0).numpy() - theirs).max() < 1e-9 * np.abs(theirs).max()


def test_the_largest_blur_scales_with_the_picture() -> None:
    assert float(BlurIG().sigmas(224)[-1]) == pytest.approx(50)
    assert float(BlurIG().sigmas(56)[-1]) == pytest.approx(12.5)
    assert float(BlurIG(reference_side=None).sigmas(56)[-1]) == pytest.approx(50)
