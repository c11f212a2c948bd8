"""Averages over noisy copies."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from networks import batch, linear, small_cnn

from heatproof.errors import BadInput
from heatproof.methods.controls import Random
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.saliency import Saliency
from heatproof.methods.smoothgrad import Smoothed, noise_scale, noisy_copies
from heatproof.types import Batch, Maps, Model


def test_a_linear_model_has_the_same_gradient_everywhere() -> None:
    model, pictures = linear(), batch(2)
    gradient = Saliency(signed=True, pooling="max_abs")
    assert torch.allclose(Smoothed(draws=4)(model, pictures), gradient(model, pictures), rtol=1e-5)
    assert float(Smoothed(draws=4, mode="variance")(model, pictures).abs().max()) < 1e-10
    squared = Smoothed(Saliency(signed=True), draws=4, mode="squared")
    assert torch.allclose(squared(model, pictures), gradient_squares(model, pictures), rtol=1e-4)


def gradient_squares(model: Model, pictures: Batch) -> torch.Tensor:
    """Squared channel by channel, then added up: not the square of the sum."""
    return Saliency(signed=True).channels(model, pictures).square().sum(1)


def test_modes_are_moments_of_the_same_draws() -> None:
    model, pictures = small_cnn(), batch(2)
    inner = Saliency(signed=True)
    scale = noise_scale(model, pictures.images, 0.15, "range")
    _, copies = next(noisy_copies(pictures, scale, 5, clamp=False, rows=10))
    draws = inner.channels(model, copies).unflatten(0, (2, 5)).transpose(0, 1)
    for mode, moment in (
        ("mean", draws.mean(0)),
        ("squared", draws.square().mean(0)),
        ("variance", draws.var(0, correction=0)),
    ):
        smoothed = Smoothed(inner, draws=5, mode=mode)(model, pictures)  # type: ignore[arg-type]
        assert torch.allclose(smoothed, moment.sum(1), rtol=1e-3, atol=1e-4 * float(moment.abs().max()))


def test_noise_has_the_stated_size_and_leaves_the_range_unless_clamped() -> None:
    model, pictures = small_cnn(), batch(3)
    spread = pictures.images.flatten(1).amax(1) - pictures.images.flatten(1).amin(1)
    scale = noise_scale(model, pictures.images, 0.2, "range")
    _, copy = next(noisy_copies(pictures, scale, 1, clamp=False, rows=3))
    measured = (copy.images - pictures.images).flatten(1).std(1)
    assert torch.allclose(measured, 0.2 * spread, rtol=0.05)
    assert float(copy.images.min()) < 0
    clamped = next(noisy_copies(pictures, scale, 1, clamp=True, rows=3))[1].images
    assert float(clamped.min()) >= 0
    assert float(clamped.max()) <= 1
    in_std = noise_scale(model, pictures.images, 1.0, "normalised").flatten()
    assert torch.allclose(in_std, torch.tensor(model.std))


def test_any_callable_can_be_smoothed_and_random_ones_draw_anew() -> None:
    model, pictures = small_cnn(), batch(2)

    def brightness(model: Model, batch: Batch) -> Maps:
        return batch.images.mean(1)

    smoothed = Smoothed(brightness, draws=200)(model, pictures)  # type: ignore[arg-type]
    assert torch.allclose(smoothed, pictures.images.mean(1), atol=0.05)
    assert float(Smoothed(Random(), draws=100)(model, pictures).std()) == pytest.approx(0.1, rel=0.2)


def test_cost_and_sign_follow_the_inner_method() -> None:
    assert Smoothed(Smoothed(draws=3), draws=5).cost() == (15, 15)
    assert Smoothed(InputXGradient()).signed
    assert not Smoothed(InputXGradient(), mode="squared").signed
    assert not Smoothed().signed
    with pytest.raises(BadInput, match="draws must be at least 1, got 0"):
        Smoothed(draws=0)


@pytest.mark.parametrize(("clamp", "readout"), [(False, "logit"), (True, "probability")])
def test_plain_gradients_are_averaged_without_batches_of_copies_to_the_same_maps(clamp: bool, readout: Any) -> None:
    model, pictures = small_cnn(), batch(3)
    quick = Smoothed(Saliency(signed=True, pooling="sum", readout=readout), draws=7, clamp=clamp)

    class Same(Saliency):  # another class: given copies
        pass

    slow = Smoothed(Same(signed=True, pooling="sum", readout=readout), draws=7, clamp=clamp)
    assert torch.allclose(quick(model, pictures), slow(model, pictures), rtol=1e-4, atol=1e-6)
    unsigned = Saliency(pooling="sum", readout=readout)  # magnitudes do not cancel
    magnitudes = Smoothed(unsigned, draws=7, clamp=clamp)(model, pictures)
    assert bool((magnitudes >= quick(model, pictures).abs() - 1e-6).all())
    assert float(magnitudes.mean()) > float(quick(model, pictures).abs().mean())
