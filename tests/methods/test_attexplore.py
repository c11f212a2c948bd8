"""AttEXplore: its transforms, its direction, its sign."""

from __future__ import annotations

import networks
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import fft, ndimage
from torch import Tensor

from heatproof.methods.attexplore import AttEXplore, cosine_matrix, diversity, smoothed, transformed
from heatproof.models import engine
from heatproof.types import Batch, Model


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
    model, pictures = networks.small_vit(), networks.batch(2)
    method = AttEXplore(steps=1, draws=6, sigma=0.0, rho=0.0, diversity=diversity_share)
    shown = []

    def listen(self: AttEXplore, model: Model, images: Tensor, aims: Tensor, way: engine.Plan) -> Tensor:
        shown.append(images)
        return images.clone()  # of half the sum of squares

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AttEXplore, "_loss_slope", listen)
        found = method._explore(model, pictures, 0)
    # Without noise and gain a copy is D x, and the slope of |D x|² / 2 is Dᵀ D x, so x · slope = |D x|².
    lengths = torch.cat(shown).view(2, 6, -1).square().sum(2).mean(1)
    assert torch.allclose((pictures.images * found).flatten(1).sum(1), lengths, rtol=1e-4)
    moved = torch.cat(shown) - pictures.images.repeat_interleave(6, 0)
    share = (moved.abs().amax((1, 2, 3)) > 1e-3).float().mean()
    assert share == diversity_share if diversity_share in (0.0, 1.0) else 0 < share < 1


def test_clean_and_published_variant_walk_opposite_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    explore, seen = AttEXplore._explore, []

    def listen(method: AttEXplore, model: Model, batch: Batch, step: int) -> Tensor:
        seen.append(batch.images)
        return explore(method, model, batch, step)

    monkeypatch.setattr(AttEXplore, "_explore", listen)
    assert (AttEXplore(steps=2, draws=2)(model, batch) >= 0).all()
    assert (AttEXplore(steps=2, draws=2, variant="lmb")(model, batch) >= 0).all()
    clean, published = (seen[1] - seen[0]).sign(), (seen[3] - seen[2]).sign()
    # Not on all pixels: a softmax of a softmax weighs the other classes differently.
    assert ((clean == -published) | (clean == 0) | (published == 0)).float().mean() > 0.85
    begin, down, _, up = (engine.gradient(model, images, batch.targets, "probability")[1] for images in seen)
    assert bool((down < begin).all())
    assert bool((up > begin).all())
