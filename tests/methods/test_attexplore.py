"""AttEXplore: its transforms, its direction, its sign."""

from __future__ import annotations

import networks
import numpy as np
import pytest
import torch
from scipy import fft, ndimage

from heatproof.methods.attexplore import AttEXplore, cosine_matrix, diversified, smoothed, transformed
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


def test_diversity_shrinks_and_moves_the_picture() -> None:
    images = torch.ones(2, 1, 56, 56)
    luck = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    top_left, bottom_right = diversified(images, luck)[:, 0]
    assert top_left[:40, :40].min() > 0.999
    assert top_left[-5:].max() == 0  # the canvas shows on the other side
    assert bottom_right[-40:, -40:].min() > 0.999
    assert bottom_right[:5].max() == 0


def test_clean_and_published_variant_walk_opposite_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    explore, seen = AttEXplore._explore, []

    def listen(method: AttEXplore, model: Model, batch: Batch, generators: list[torch.Generator]) -> torch.Tensor:
        seen.append(batch.images)
        return explore(method, model, batch, generators)

    monkeypatch.setattr(AttEXplore, "_explore", listen)
    assert (AttEXplore(steps=2, draws=2)(model, batch) >= 0).all()
    assert (AttEXplore(steps=2, draws=2, variant="lmb")(model, batch) >= 0).all()
    clean, published = (seen[1] - seen[0]).sign(), (seen[3] - seen[2]).sign()
    assert ((clean == -published) | (clean == 0) | (published == 0)).float().mean() > 0.95
