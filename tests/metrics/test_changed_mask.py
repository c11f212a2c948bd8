"""Masks made worse: what each change does to a shape, and that the score is that of the changed mask."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from heatproof.attribute import attribute
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.methods.controls import Oracle
from heatproof.metrics._support.changed_masks import changed, coarse, dilated, shifted
from heatproof.metrics.auc_iou import AUCIoU
from heatproof.metrics.changed_mask import AUCIoUChangedMask
from heatproof.models import load


def square(size: int = 12, low: int = 4, high: int = 8) -> torch.Tensor:
    mask = torch.zeros(1, size, size, dtype=torch.bool)
    mask[:, low:high, low:high] = True
    return mask


def test_growing_and_shrinking_move_every_edge() -> None:
    assert torch.equal(dilated(square(), 2), square(12, 2, 10))
    assert torch.equal(changed(square(), "eroded", 1, []), square(12, 5, 7))
    assert not changed(square(), "eroded", 2, []).any()


def test_a_mask_goes_on_beyond_the_edge_of_the_picture() -> None:
    whole = torch.ones(1, 6, 6, dtype=torch.bool)
    assert changed(whole, "eroded", 2, []).all()


def test_a_coarse_mask_is_made_of_cells() -> None:
    assert torch.equal(coarse(square(12, 4, 8), 4), square(12, 4, 8))
    assert torch.equal(coarse(square(12, 4, 8), 6), torch.zeros(1, 12, 12, dtype=torch.bool))  # a ninth of each cell
    assert coarse(square(13, 4, 8), 4).shape == (1, 13, 13)


def test_a_shift_keeps_the_shape_inside_the_picture() -> None:
    moved = shifted(square()[0], 2, -3)
    assert torch.equal(moved[6:10, 1:5], torch.ones(4, 4, dtype=torch.bool))
    assert int(moved.sum()) == 16
    assert int(shifted(square()[0], 10, 0).sum()) == 0
    away = changed(square(40, 15, 25), "shifted", 4, [torch.Generator().manual_seed(0)])
    assert int(away.sum()) == 100
    assert not torch.equal(away, square(40, 15, 25))


@pytest.mark.parametrize("change", ["eroded", "dilated", "shifted", "coarse"])
def test_the_score_is_that_of_the_changed_mask(change) -> None:
    model, batch = load("embedded:object"), TwoFactor(count=3).batch(range(3))
    found = attribute(model, batch, Oracle())
    metric = AUCIoUChangedMask(change)
    values = metric(found).values
    assert batch.regions is not None
    worse = changed(batch.regions, change, 2, batch.generators("changed mask"))
    own = AUCIoU()(replace(found, batch=replace(batch, regions=worse))).values
    torch.testing.assert_close(values, own)
    assert bool((values < AUCIoU()(found).values).all())  # the map marks the mask as it was


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(BadInput, match=r"change .* must be one of"):
        AUCIoUChangedMask("melted")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="amount"):
        AUCIoUChangedMask(amount=0.6)
