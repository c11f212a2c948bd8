"""Multigrid: what the exact solver finds, up to the tolerance, whatever is hidden."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heatproof.errors import BadInput
from heatproof.occlusion.imputers import multigrid
from heatproof.occlusion.imputers.road import NoisyLinear, solved

SIDES = st.integers(multigrid.NARROWEST, 70)


def hidden_by(kind: str, height: int, width: int, share: float, dice: np.random.Generator) -> multigrid.Flags:
    """Scattered pixels, blobs, blobs with holes, or a disc: (H, W), at least one hidden and one visible."""
    noise = dice.random((height, width))
    rows, columns = np.mgrid[:height, :width]
    heat = {
        "scattered": noise,
        "blobs": cv2.GaussianBlur(noise, (0, 0), 4),
        "holes": cv2.GaussianBlur(noise, (0, 0), 4) + 0.05 * noise,
        "disc": np.hypot(rows - height / 2, columns - width / 2) + 1e-3 * noise,
    }[kind]
    count = min(max(1, round(share * heat.size)), heat.size - 1)
    return np.asarray(heat.ravel().argsort().argsort().reshape(heat.shape) < count)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["scattered", "blobs", "holes", "disc"]),
    height=SIDES,
    width=SIDES,
    channels=st.sampled_from([1, 3, 5]),
    share=st.floats(0.02, 0.98),
    tolerance=st.sampled_from([0.01, 0.002, 0.0001]),
    seed=st.integers(0, 99),
)
def test_it_finds_what_the_exact_solver_finds_up_to_about_the_tolerance(
    kind, height, width, channels, share, tolerance, seed
):
    dice = np.random.default_rng(seed)
    picture = dice.random((channels, height, width), dtype=np.float32)
    hidden = hidden_by(kind, height, width, share, dice)
    found = multigrid.solve(picture, hidden, tolerance)
    exact = solved(picture.astype(np.float64), hidden)
    assert found.shape == exact.shape
    assert np.sqrt(np.square(found - exact).mean()) <= 1.5 * tolerance


def test_a_looser_tolerance_is_really_looser():
    dice = np.random.default_rng(0)
    picture, hidden = dice.random((3, 96, 96), dtype=np.float32), hidden_by("blobs", 96, 96, 0.6, dice)
    exact = solved(picture.astype(np.float64), hidden)
    loose, tight = (abs(multigrid.solve(picture, hidden, each) - exact).max() for each in (0.1, 1e-5))
    assert tight < 1e-4 < loose


@given(height=st.integers(1, 9), width=st.integers(1, 9), seed=st.integers(0, 9))
def test_coarser_is_the_transpose_of_finer(height, width, seed):
    dice = np.random.default_rng(seed)
    coarse = dice.standard_normal((2, height, width), dtype=np.float32)
    fine = dice.standard_normal((2, 2 * height, 2 * width), dtype=np.float32)
    one, other = np.vdot(multigrid.finer(coarse), fine), np.vdot(coarse, multigrid.coarser(fine))
    assert float(one) == pytest.approx(float(other), rel=1e-4, abs=1e-4)


def test_a_cycle_is_symmetric_as_conjugate_gradients_want():
    dice = np.random.default_rng(0)
    hidden = hidden_by("holes", 32, 64, 0.7, dice)
    levels = multigrid.hierarchy(hidden, ~hidden, 3)
    one, other = (dice.standard_normal((1, 32, 64), dtype=np.float32) * hidden for _ in range(2))
    there, back = np.vdot(other, multigrid.cycle(levels, one)), np.vdot(multigrid.cycle(levels, other), one)
    assert float(there) == pytest.approx(float(back), rel=1e-4)
    assert np.vdot(one, multigrid.cycle(levels, one)) > 0


def test_road_keeps_the_exact_solver_and_both_draw_the_same_noise():
    images = torch.rand(2, 3, 40, 40, generator=torch.Generator().manual_seed(0))
    keep = torch.rand(2, 40, 40, generator=torch.Generator().manual_seed(1)) < 0.4
    quick, exact = (NoisyLinear(solver=each)(images, keep, seeds=[3, 4]) for each in ("multigrid", "exact"))
    assert float((quick - exact).square().mean().sqrt()) < NoisyLinear.tolerance
    assert not torch.equal(quick, exact)
    with pytest.raises(BadInput, match="solver"):
        NoisyLinear(solver="fast")
    with pytest.raises(BadInput, match="tolerance"):
        NoisyLinear(tolerance=0)
