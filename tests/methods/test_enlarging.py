"""Enlarging by products of matrices is bilinear interpolation."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from heatproof.methods._support.upsample import interpolation, upsample


@given(height=st.integers(1, 9), width=st.integers(1, 9), size=st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_the_same_as_interpolate(height: int, width: int, size: tuple[int, int]) -> None:
    maps = torch.randn(3, height, width, generator=torch.Generator().manual_seed(height * 10 + width))
    wanted = F.interpolate(maps[:, None], size, mode="bilinear", align_corners=False)[:, 0]
    assert torch.allclose(upsample(maps, torch.zeros(3, 3, *size)), wanted, atol=1e-5)


def test_rows_sum_to_one_and_what_is_kept_may_take_part_in_autograd() -> None:
    interpolation.cache_clear()
    with torch.inference_mode():
        upsample(torch.ones(1, 5, 5), torch.zeros(1, 3, 17, 17))
    assert torch.allclose(interpolation(5, 17).sum(1), torch.ones(17))
    maps = torch.ones(1, 5, 5, requires_grad=True)
    upsample(maps, torch.zeros(1, 3, 17, 17)).sum().backward()  # type: ignore[no-untyped-call]
    assert maps.grad is not None
    assert float(maps.grad.sum()) == pytest.approx(17 * 17, rel=1e-5)
