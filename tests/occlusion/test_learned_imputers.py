"""Imputers that know more than the visible pixels: the diffusion prior, the twin, and ROAD's linear
system."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from networks import batch, pictures, small_cnn

from heatproof import engine, models
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, NotApplicable
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.road import NoisyLinear, averages, solved
from heatproof.occlusion.imputers.twin import Twin
from heatproof.occlusion.occluded_images import shown
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.types import Batch


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """Reconstructions of this test run only; drawn pictures may be shared."""
    monkeypatch.setattr(
        "heatproof.occlusion.diffusion.reconstruction_cache.cache_directory", lambda: tmp_path_factory.mktemp("kept")
    )


def _with_twins() -> Batch:
    plain = batch()
    return Batch(plain.images, plain.targets, plain.ids, plain.regions, twins=pictures(seed=4))


def test_the_weights_of_neighbours_are_a_sixth_beside_and_a_twelfth_across():
    row = averages(5, 5)[12].toarray().reshape(5, 5)
    assert row[1:4, 1:4].ravel().tolist() == pytest.approx(
        [1 / 12, 1 / 6, 1 / 12, 1 / 6, 0, 1 / 6, 1 / 12, 1 / 6, 1 / 12]
    )
    np.testing.assert_allclose(np.asarray(averages(7, 4).sum(1)).ravel(), 1)


def test_every_hidden_pixel_is_the_mean_of_its_neighbours():
    dice = np.random.default_rng(0)
    picture, hidden = dice.random((3, 9, 11)), dice.random((9, 11)) < 0.6
    filled = picture.copy()
    filled[:, hidden] = solved(picture, hidden)
    mean = (averages(9, 11) @ filled.reshape(3, -1).T).T.reshape(3, 9, 11)
    np.testing.assert_allclose(filled[:, hidden], mean[:, hidden], atol=1e-9)
    assert filled.min() >= picture[:, ~hidden].min() - 1e-9
    assert filled.max() <= picture[:, ~hidden].max() + 1e-9


def test_road_of_a_flat_picture_is_flat_but_for_its_noise():
    images = torch.full((2, 3, 16, 16), 0.4)
    keep = torch.rand(2, 16, 16, generator=torch.Generator().manual_seed(0)) < 0.3
    torch.testing.assert_close(NoisyLinear(noise=0)(images, keep, seeds=[0, 1]), images, atol=1e-6, rtol=0)
    noisy = NoisyLinear(noise=0.02)(images, keep, seeds=[0, 1])
    spread = (noisy - images).permute(1, 0, 2, 3)[:, ~keep].std()
    assert float(spread) == pytest.approx(0.02, rel=0.15)
    with pytest.raises(BadInput):
        NoisyLinear(noise=-1)


def test_a_game_with_twins_plays_with_each_pictures_own():
    shown_batch, model = _with_twins(), small_cnn()
    game = game_of(model, shown_batch, Occlusion(Twin(), Grid(2)), "logit")
    coalitions = torch.tensor([[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 1]], dtype=torch.bool).expand(3, -1, -1)
    values = game.value(coalitions)
    none = engine.forward(model, shown_batch.twins).gather(1, shown_batch.targets[:, None])[:, 0]
    torch.testing.assert_close(values[:, 0].float(), none, atol=1e-5, rtol=1e-5)
    keep = torch.zeros(3, 1, 32, 32, dtype=torch.bool)
    keep[..., :16, :16] = keep[..., 16:, 16:] = True
    mixed = shown(shown_batch, keep, Occlusion(Twin(), Grid(2)))[:, 0]
    assert torch.equal(mixed, shown_batch.images.where(keep, shown_batch.twins))
    some = engine.forward(model, mixed).gather(1, shown_batch.targets[:, None])[:, 0]
    torch.testing.assert_close(values[:, 2].float(), some, atol=1e-5, rtol=1e-5)


def test_twin_says_why_it_does_not_apply():
    game = game_of(small_cnn(), batch(), Occlusion(Twin(), Grid(2)))
    with pytest.raises(NotApplicable, match="no twins"):
        game.value(torch.zeros(3, 1, 4, dtype=torch.bool))
    with pytest.raises(NotApplicable, match="inside a game"):
        Twin()(pictures(), torch.ones(3, 32, 32, dtype=torch.bool))


def test_the_embedded_prior_serves_scene_and_object_better_than_mean_fill_at_half_removed():
    count = 40
    batch = TwoFactor("held_out", count).batch(range(count))
    keep = torch.rand(count, 64, 64, generator=torch.Generator().manual_seed(0)) < 0.5
    right = {}
    for name, imputer in (("mean", Mean()), ("diffusion", Diffusion())):
        filled = imputer(batch.images, keep, seeds=list(range(count)))
        for task in ("scene", "object"):
            answers = engine.forward(models.load(f"embedded:{task}"), filled).argmax(1)
            right[name, task] = float((answers == batch.labels[task]).float().mean())
    assert right["diffusion", "scene"] > right["mean", "scene"] + 0.2
    assert right["diffusion", "object"] > right["mean", "object"] + 0.1


def test_the_embedded_prior_plays_in_the_game_like_any_other():
    batch = TwoFactor(count=2).batch(range(2))
    game = game_of(
        models.load("embedded:scene"), batch.aimed(batch.labels["scene"]), Occlusion(Diffusion(), Grid(2), 2)
    )
    coalitions = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 1]], dtype=torch.bool).expand(2, -1, -1)
    values = game.value(coalitions)
    assert bool(values.isfinite().all())
    assert torch.equal(values, game.value(coalitions))
