"""Similarity in feature space: 1 where nothing changes, of the visible places only, and the same one by one."""

from __future__ import annotations

import pytest
import torch
from networks import batch, small_cnn, small_vit
from torch import nn

from heatproof.audit.feature_similarity import FeatureSimilarity, similarity
from heatproof.errors import BadInput
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.internal import Internal
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.patches import Patches
from heatproof.occlusion.segmenters.squares import Squares
from heatproof.types import Attribution, Model


def judged(model: Model, metric: FeatureSimilarity, count: int = 3):
    shown = batch(count)
    return metric(Attribution(model, shown, None, torch.zeros(shown.images[:, 0].shape)))


def test_only_visible_places_count_by_their_share():
    whole = torch.tensor([[[1.0, 1.0]], [[0.0, 0.0]]])  # two features, two places
    other = torch.tensor([[[1.0, -1.0]], [[0.0, 0.0]]])
    assert float(similarity(whole, other, torch.tensor([[1.0, 0.0]]))) == 1
    assert float(similarity(whole, other, torch.tensor([[0.0, 1.0]]))) == -1
    assert float(similarity(whole, other, torch.tensor([[1.0, 0.5]]))) == pytest.approx(1 / 3)
    assert similarity(whole, other, torch.zeros(1, 2)).isnan()


class Pointwise(nn.Module):
    """Each place looks at itself alone, so that what is hidden elsewhere changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cut = nn.Conv2d(3, 5, 8, 8)
        self.head = nn.Linear(5, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.cut(images).mean((2, 3)))


def test_a_network_whose_places_do_not_look_around_is_never_disturbed():
    model = Model("pointwise", Pointwise(), cam_layer="cut")
    found = judged(model, FeatureSimilarity(Occlusion(Constant(), Patches(8))))
    torch.testing.assert_close(found.values, torch.ones(3, dtype=torch.float64), atol=1e-6, rtol=0)


@pytest.mark.parametrize("imputer", [Mean(), Internal()])
def test_a_transformer_is_disturbed_and_each_picture_has_its_own_number(imputer):
    metric = FeatureSimilarity(Occlusion(imputer, Patches(8)), layer="blocks")
    together = judged(small_vit(), metric)
    assert bool((together.values < 0.9999).all())
    assert bool((together.values > -1).all())
    assert together.curve is not None
    assert bool((together.curve.y[:, 0] == 1).all())
    shown = batch(3)
    for row in range(3):
        alone = metric(Attribution(small_vit(), shown.select([row]), None, torch.zeros(1, *shown.images.shape[2:])))
        torch.testing.assert_close(alone.values[0], together.values[row], atol=1e-5, rtol=0)


def test_dropped_tokens_of_pictures_that_hide_little_change_little():
    metric = FeatureSimilarity(Occlusion(Internal(), Patches(8)), layer="blocks", levels=(0.95, 0.1))
    curve = judged(small_vit(), metric).curve
    assert curve is not None
    assert bool((curve.y[:, 1] > curve.y[:, 2]).all())


def test_convolutions_have_a_layer_of_their_own():
    found = judged(small_cnn(), FeatureSimilarity(Occlusion(Mean(), Squares(4))))
    assert bool(found.values.isfinite().all())


def test_levels_are_shares():
    with pytest.raises(BadInput, match="levels"):
        FeatureSimilarity(levels=(1.0,))
