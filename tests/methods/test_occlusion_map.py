"""Sliding occlusion: exact on a linear model."""

from __future__ import annotations

import networks
import pytest
import torch

from heatproof.errors import BadInput
from heatproof.methods.occlusion import SlidingOcclusion, windows
from heatproof.occlusion.imputers.constant import Constant


@pytest.mark.parametrize(("side", "share", "positions"), [(224, 0.15, 13), (33, 0.15, 13), (10, 0.5, 2), (7, 1.0, 1)])
def test_windows_reach_from_edge_to_edge(side: int, share: float, positions: int) -> None:
    found = windows(side, share, positions)
    assert found.shape == (positions, side)
    assert found.any(0).all()
    assert found[0, 0]
    assert found[-1, -1]
    assert len(found.sum(1).unique()) == 1


def test_on_a_linear_model_a_tile_gets_what_it_holds() -> None:
    model, batch = networks.linear(), networks.batch(2)
    found = SlidingOcclusion(positions=4, window=0.25, imputer=Constant(), readout="logit")(model, batch)
    weights = model.network.fc.weight.detach().view(10, 3, 32, 32)[batch.targets]
    held = (weights * batch.images).sum(1).unfold(1, 8, 8).unfold(2, 8, 8).sum((3, 4))
    expected = held.repeat_interleave(8, 1).repeat_interleave(8, 2)
    assert torch.allclose(found, expected, atol=1e-5)


def test_windows_that_leave_gaps_are_refused() -> None:
    with pytest.raises(BadInput, match="cover"):
        SlidingOcclusion(positions=4, window=0.2)
