"""The nearest visible pixel: exactly, and by chamfer distances up to about a pixel."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heatproof.occlusion.imputers.nearest import Nearest, nearest_by_chamfer, nearest_exactly


def distances(visible, places):
    """How far each pixel is from its place, and from the nearest visible pixel."""
    rows, columns = np.mgrid[: visible.shape[0], : visible.shape[1]]
    down, along = np.divmod(places, visible.shape[1])
    found = np.hypot(down - rows, along - columns)
    seen = np.argwhere(visible)
    least = np.hypot(rows[..., None] - seen[:, 0], columns[..., None] - seen[:, 1]).min(-1)
    return found, least


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.floats(0.01, 1), st.integers(0, 99))
def test_both_take_a_visible_pixel_and_the_nearest_or_nearly(height, width, share, seed):
    visible = np.random.default_rng(seed).random((height, width)) < share
    visible[0, 0] = True
    for find, excess in ((nearest_exactly, 1e-9), (nearest_by_chamfer, 1.0)):
        places = find(visible)
        assert visible.ravel()[places].all()
        found, least = distances(visible, places)
        assert (found <= least + excess).all()
        assert (found[visible] == 0).all()


def test_a_half_picture_is_continued_row_by_row():
    images = torch.rand(1, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    keep = torch.zeros(1, 12, 12, dtype=torch.bool)
    keep[..., :5] = True
    for search in ("chamfer", "exact"):
        filled = Nearest(search=search)(images, keep)
        assert torch.equal(filled[..., 5:], images[..., 4:5].expand(-1, -1, -1, 7))


@pytest.mark.parametrize("search", ["chamfer", "exact"])
def test_with_nothing_visible_the_mean_colour_is_taken(search):
    images = torch.rand(1, 3, 8, 8)
    filled = Nearest((0.1, 0.2, 0.3), search)(images, torch.zeros(1, 8, 8, dtype=torch.bool))
    torch.testing.assert_close(filled, torch.tensor([0.1, 0.2, 0.3]).view(1, 3, 1, 1).expand_as(images))
