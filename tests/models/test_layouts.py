"""Places found again, however a layer lays them out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heatproof.errors import NotApplicable
from heatproof.models._support.token_layouts import LEADING, as_pictures, grid, layout


@given(st.integers(1, 20), st.integers(1, 3), st.integers(0, 4), st.sampled_from([8, 16]))
def test_the_grid_is_found_whatever_comes_first(side: int, ratio: int, first: int, patch: int) -> None:
    found = grid(first + ratio * side * side, (side * patch, ratio * side * patch))
    if ratio * ((side + 1) ** 2) > first + ratio * side * side:  # more leading tokens than another row would need
        assert found == (first, side, ratio * side)


@given(st.integers(2, 12), st.integers(1, 3), st.booleans(), st.integers(30, 40), st.integers(0, 3))
def test_every_layout_gives_the_same_pictures(side: int, ratio: int, tall: bool, width: int, first: int) -> None:
    """Thirty channels and more are no side of a picture whose patches are at most 36 in a row, unless they are."""
    rows, columns = (ratio * side, side) if tall else (side, ratio * side)
    shown, wanted = (8 * rows, 8 * columns), torch.rand(2, width, rows, columns)
    last = wanted.permute(0, 2, 3, 1)
    tokens = torch.cat([torch.rand(2, first, width), last.flatten(1, 2)], 1)
    assert layout(wanted.shape, shown) == "channels_first"
    assert torch.equal(as_pictures(wanted, shown), wanted)
    if layout(last.shape, shown) != "channels_first":  # as of 30 × 30 places and 30 channels: the shape does not decide
        assert layout(last.shape, shown) == "channels_last"
        assert torch.equal(as_pictures(last, shown), wanted)
    assert layout(tokens.shape, shown) == "tokens"
    assert torch.equal(as_pictures(tokens, shown), wanted)


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ((1, 7, 7, 7), "channels_first"),  # either way: what most layers are
        ((1, 7, 7, 96), "channels_last"),
        ((1, 96, 7, 7), "channels_first"),
        ((1, 96, 1, 1), None),  # pooled
        ((1, 1, 1, 96), None),
        ((1, 96, 14, 7), None),  # no sides of a square
        ((1, 49 + LEADING, 96), "tokens"),
        ((1, 49 + LEADING + 1, 96), None),
        ((1, 1, 96), None),
        ((1, 96), None),
        ((1, 2, 7, 7, 96), None),
    ],
)
def test_what_has_places_and_what_has_not(shape: tuple[int, ...], found: str | None) -> None:
    assert layout(shape, (224, 224)) == found


def test_other_shapes_are_refused() -> None:
    with pytest.raises(NotApplicable, match=r"\(batch, height, width, channels\) or tokens, got \(2, 96\)"):
        as_pictures(torch.zeros(2, 96), (32, 32))
    with pytest.raises(NotApplicable, match="5 tokens do not lay out as square patches of a 300×700 picture"):
        as_pictures(torch.zeros(2, 5, 96), (300, 700))
