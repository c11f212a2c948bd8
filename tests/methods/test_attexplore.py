"""AttEXplore: its transforms, its direction, its sign."""

from __future__ import annotations

import dataclasses

import networks
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import fft, ndimage
from torch import Tensor

from heatproof import engine
from heatproof.methods.attexplore import AttEXplore, cosine_matrix, diversity, smoothed, transformed
from heatproof.types import Batch


def test_the_cosine_matrix_is_scipys_dct() -> None:
    picture = networks.pictures(1)[0].double()
    rows = cosine_matrix(32)
    found = transformed(rows, picture[None], rows.mT)[0].numpy()
    assert np.abs(found - fft.dctn(picture.numpy(), axes=(1, 2), norm="ortho")).max() < 1e-12
    assert torch.allclose(rows @ rows.mT, torch.eye(32, dtype=torch.float64), atol=1e-12)


def test_smoothing_is_a_truncated_gaussian() -> None:
    picture = networks.pictures(1)[0].double()
    expected = np.stack([ndimage.gaussian_filter(c, 1.0, truncate=3.0, mode="constant") for c in picture.numpy()])
    assert np.abs(smoothed(picture[None])[0].numpy() - expected).max() < 1e-7


def seen_moved(images: Tensor, luck: Tensor) -> Tensor:
    vertical, horizontal = (
        diversity(luck[:, 0], luck[:, k], side) for k, side in zip((2, 1), images.shape[2:], strict=True)
    )
    return transformed(vertical, images, horizontal.mT)


def test_diversity_shrinks_and_moves_the_picture() -> None:
    images = torch.ones(2, 1, 56, 48)
    luck = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    top_left, bottom_right = seen_moved(images, luck)[:, 0]
    assert top_left[:40, :35].min() > 0.999
    assert top_left[-5:].max() == 0  # the canvas shows on the other side
    assert bottom_right[-40:, -35:].min() > 0.999
    assert bottom_right[:5].max() == 0


def test_diversity_is_an_affine_resampling() -> None:
    generator = torch.Generator().manual_seed(0)
    images, luck = torch.rand(5, 2, 20, 26, generator=generator), torch.rand(5, 3, generator=generator)
    largest = 257 / 224
    size = 1 + luck[:, 0] * (largest - 1)
    theta = torch.zeros(5, 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = largest / size
    theta[:, :, 2] = (largest - 2 * luck[:, 1:] * (largest - size)[:, None]) / size[:, None] - 1
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    wanted = F.grid_sample(images, grid, padding_mode="zeros", align_corners=False)
    assert torch.allclose(seen_moved(images, luck), wanted, atol=1e-5)


@pytest.mark.parametrize("diversity_share", [0.0, 0.5, 1.0])
def test_slopes_come_back_the_way_the_copies_went(diversity_share: float) -> None:
    pictures = networks.batch(2)
    method = AttEXplore(steps=1, draws=6, sigma=0.0, rho=0.0, diversity=diversity_share)
    shown = []

    def listen(copies: Tensor, owners: Tensor) -> Tensor:
        shown.append(copies)
        return copies.clone()  # of half the sum of squares

    found = method.explored(pictures, 0, listen, 4)
    # Without noise and gain a copy is D x, and the slope of |D x|² / 2 is Dᵀ D x, so x · slope = |D x|².
    lengths = torch.cat(shown).view(2, 6, -1).square().sum(2).mean(1)
    assert torch.allclose((pictures.images * found).flatten(1).sum(1), lengths, rtol=1e-4)
    moved = torch.cat(shown) - pictures.images.repeat_interleave(6, 0)
    share = (moved.abs().amax((1, 2, 3)) > 1e-3).float().mean()
    assert share == diversity_share if diversity_share in (0.0, 1.0) else 0 < share < 1


def seen_copies(method: AttEXplore, steps: range, pictures: Batch) -> Tensor:
    """(steps, images, draws, C, H, W) the copies that the model is shown."""
    shown = []

    def listen(copies: Tensor, owners: Tensor) -> Tensor:
        shown.append(copies.clone())
        return torch.zeros_like(copies)

    for step in steps:
        method.explored(pictures, step, listen, 4)
    return torch.cat(shown).view(len(steps), len(pictures), method.draws, *pictures.images.shape[1:])


def test_every_copy_has_noise_of_its_own_of_the_given_strength() -> None:
    pictures = networks.batch(2)
    copies = seen_copies(AttEXplore(draws=3, rho=0.0, sigma=0.1, diversity=0.0), range(2), pictures)
    noise = (copies - pictures.images[None, :, None]).flatten(0, 2).flatten(1)
    assert torch.allclose(noise.std(1), torch.full((12,), 0.1), rtol=0.05)
    assert float(torch.corrcoef(noise).fill_diagonal_(0).abs().max()) < 0.1


def test_every_copy_has_gains_of_its_own_within_the_given_spread() -> None:
    pictures, rho = networks.batch(2), 0.4
    copies = seen_copies(AttEXplore(draws=3, rho=rho, sigma=0.0, diversity=0.0), range(2), pictures)
    cosines = cosine_matrix(32).float()
    spectra = transformed(cosines, copies.flatten(0, 2), cosines.mT).view_as(copies)
    whole = transformed(cosines, pictures.images, cosines.mT)[None, :, None]
    clear = (whole.abs() > 0.05).expand_as(spectra)
    gains = (spectra / whole)[clear]
    assert 1 - rho - 1e-3 < float(gains.min()) < 1 - 0.95 * rho
    assert 1 + 0.95 * rho < float(gains.max()) < 1 + rho + 1e-3
    assert float(gains.std()) == pytest.approx(2 * rho / 12**0.5, rel=0.05)
    apart = (spectra / whole).flatten(0, 2)[:, clear[0, :, 0].all(0)]
    assert float(torch.corrcoef(apart).fill_diagonal_(0).abs().max()) < 0.5


def test_copies_move_down_and_across_by_draws_of_their_own() -> None:
    white = networks.batch(1).showing(torch.ones(1, 3, 32, 32))
    copies = seen_copies(AttEXplore(draws=40, rho=0.0, sigma=0.0, diversity=1.0), range(1), white)[0, 0, :, 0]
    above, left = ((copies.mean(axis) < 0.5).float().cumprod(1).sum(1) for axis in (2, 1))
    assert float(above.max()) >= 1
    assert float(left.max()) >= 1
    assert abs(float(torch.corrcoef(torch.stack([copies[:, 0].mean(1), copies[:, :, 0].mean(1)]))[0, 1])) < 0.6


def test_clean_and_published_variant_walk_opposite_ways() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    unchanged = AttEXplore(steps=2, draws=1, rho=0.0, sigma=0.0, diversity=0.0)
    plain = dataclasses.replace(model, mean=(0.0,) * 3, std=(1.0,) * 3)
    seen: list[Tensor] = []
    with engine.use(engine.Engine(measure=False)):
        engine.settled(plain, batch.images, "gradient")
        listening = plain.network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
        for variant in ("clean", "lmb"):
            assert (dataclasses.replace(unchanged, variant=variant)(plain, batch) >= 0).all()
        listening.remove()
    clean, published = (seen[1] - seen[0]).sign(), (seen[3] - seen[2]).sign()
    # Not on all pixels: a softmax of a softmax weighs the other classes differently.
    assert ((clean == -published) | (clean == 0) | (published == 0)).float().mean() > 0.85
    begin, down, _, up = (engine.gradient(plain, images, batch.targets, "probability")[1] for images in seen)
    assert bool((down < begin).all())
    assert bool((up > begin).all())
