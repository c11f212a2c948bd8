"""Extremal perturbation: masks, their area, and a quadrant that is found."""

from __future__ import annotations

import pytest
import torch
from closed_forms import drawn, weighted

from heatproof.attribute import attribute
from heatproof.errors import BadInput
from heatproof.methods.extremal_perturbation import (
    ExtremalPerturbation,
    area_penalty,
    pyramid,
    shown_through,
    smooth_masks,
)
from heatproof.types import Batch

SIDE = 32


def test_masks_keep_to_the_range_and_the_size() -> None:
    cells = torch.rand(2, 8, 5, generator=torch.Generator().manual_seed(0))
    masks = smooth_masks(cells, 4, (30, 19))
    assert masks.shape == (2, 30, 19)
    assert 0 <= float(masks.min()) < float(masks.max()) <= 1
    assert smooth_masks(torch.zeros(1, 4, 4), 3, (12, 12)).eq(0).all()
    torch.testing.assert_close(
        smooth_masks(torch.ones(1, 4, 4), 3, (12, 12)).amax(), torch.tensor(1.0), atol=0.05, rtol=0
    )


def test_a_mask_of_the_wanted_area_costs_nothing() -> None:
    masks = torch.zeros(2, 10, 10)
    masks[:, :2] = 1
    assert area_penalty(masks, 0.2).tolist() == [0, 0]
    assert area_penalty(masks, 0.3).tolist() == pytest.approx([0.1, 0.1])
    torch.testing.assert_close(
        area_penalty(masks.flatten(1)[:, torch.randperm(100)].view(2, 10, 10), 0.2), torch.zeros(2)
    )


def test_a_mask_goes_from_sharp_to_blurred() -> None:
    images = torch.rand(2, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    levels = pyramid(images)
    torch.testing.assert_close(shown_through(torch.ones(2, SIDE, SIDE), levels), images)
    torch.testing.assert_close(shown_through(torch.zeros(2, SIDE, SIDE), levels), levels[:, -1])
    between = shown_through(torch.full((2, SIDE, SIDE), 0.5), levels)
    torch.testing.assert_close(between, levels[:, 3:5].mean(1))


@pytest.mark.parametrize("mode", ["preserve", "delete", "both"])
def test_the_quadrant_that_the_answer_rests_on_is_found(mode: str) -> None:
    """Checkerboards of 1 pixel, of which blur leaves nothing; the answer is the contrast of one quadrant."""
    rows = torch.arange(SIDE)
    board = ((rows[:, None] + rows) % 2).float()
    weights = torch.zeros(2, 1, SIDE, SIDE)
    weights[0, 0, : SIDE // 2, SIDE // 2 :] = (2 * board - 1)[: SIDE // 2, SIDE // 2 :]
    weights[1, 0, SIDE // 2 :, : SIDE // 2] = (2 * board - 1)[SIDE // 2 :, : SIDE // 2]
    shown = Batch(board.expand(2, 1, SIDE, SIDE).clone(), torch.tensor([0, 1]), ("up", "down"))
    method = ExtremalPerturbation(area=0.25, steps=120, cells=16, mode=mode)  # type: ignore[arg-type]
    maps = attribute(weighted(weights / 4), shown, method).maps
    for mask, weight in zip(maps > 0.5, weights[:, 0] != 0, strict=True):
        assert float((mask & weight).sum() / (mask | weight).sum()) > 0.8


def test_without_evidence_there_is_still_the_area() -> None:
    maps = attribute(
        weighted(torch.zeros(2, 1, 16, 16)), _noise(), ExtremalPerturbation(area=0.2, steps=150, cells=8)
    ).maps
    assert float(maps.mean()) == pytest.approx(0.2, abs=0.2)


def _noise() -> Batch:
    return Batch(drawn(1, 1, 16, 16).sigmoid(), torch.zeros(1, dtype=torch.int64), ("noise",))


@pytest.mark.parametrize("area", [0, 1, -0.1, float("nan")])
def test_areas_that_are_none(area: float) -> None:
    with pytest.raises(BadInput, match="area must lie between 0 and 1"):
        ExtremalPerturbation(area=area)
