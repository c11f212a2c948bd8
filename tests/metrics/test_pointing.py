"""The pointing game: the hottest pixel, and what happens when there are several."""

from __future__ import annotations

import pytest
import torch

from heatproof.errors import BadShape
from heatproof.metrics.pointing_game import pointing_game


def test_one_hottest_pixel_hits_or_misses():
    maps = torch.rand(2, 5, 5)
    maps[0, 1, 1], maps[1, 4, 4] = 2.0, 2.0
    region = torch.zeros(2, 5, 5, dtype=torch.bool)
    region[:, :2, :2] = True
    assert pointing_game(maps, region).tolist() == [1, 0]
    assert pointing_game(maps - 5, region).tolist() == [1, 0]  # the largest, negative or not


def test_hottest_pixels_that_tie_count_by_their_share():
    maps = torch.zeros(1, 4, 4)
    maps[0, 0] = 1
    region = torch.zeros(1, 4, 4, dtype=torch.bool)
    region[0, 0, :3] = True
    assert pointing_game(maps, region).tolist() == [0.75]
    assert pointing_game(torch.zeros(1, 4, 4), region).tolist() == [3 / 16]


def test_shapes_are_checked():
    with pytest.raises(BadShape):
        pointing_game(torch.zeros(1, 4, 4), torch.zeros(1, 4, 5, dtype=torch.bool))
