"""The sums under a mosaic's heatmap."""

from __future__ import annotations

import numpy as np
import pytest

from heatproof.report.sections.mosaic_exhibits import tile_sums


def test_tile_sums_are_shares_of_all_relevance() -> None:
    heat = np.zeros((4, 4))
    heat[0, 0], heat[1, 3], heat[3, 0], heat[2, 2] = 3.0, -1.0, 4.0, -2.0
    sums = tile_sums(heat, 2)
    assert sums[..., 0].tolist() == [[0.3, 0.0], [0.4, 0.0]]
    assert sums[..., 1].tolist() == [[0.0, 0.1], [0.0, 0.2]]
    assert tile_sums(np.random.default_rng(0).normal(size=(9, 9)), 3).sum() == pytest.approx(1)


def test_a_map_of_zeros_has_no_shares() -> None:
    assert not tile_sums(np.zeros((6, 6)), 2).any()
