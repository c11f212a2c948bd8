"""A prior of one size draws pictures of others: nothing hidden leaks, kept pixels stay, gradients are the adjoint."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import small_cnn
from tiny_prior import tiny

from heatproof import attribute
from heatproof.methods.controls import Random
from heatproof.metrics.fud import Fud
from heatproof.occlusion.diffusion.guidance import Guidance
from heatproof.occlusion.diffusion.other_size import Frame, laid_on, shrunk
from heatproof.occlusion.diffusion.reconstruct import reconstruct
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.types import Batch, read

FEW = Sampler("ddim", 4, late_start=False)
SIZES = [(64, 64), (56, 56), (48, 80), (20, 20)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "cache"))


def made(size: tuple[int, int], share: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:
    dice = torch.Generator().manual_seed(7)
    return torch.rand(2, 3, *size, generator=dice), torch.rand(2, *size, generator=dice) < share


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("guided", [False, True])
def test_kept_pixels_stay_and_hidden_ones_never_reach_the_prior(size: tuple[int, int], guided: bool) -> None:
    images, keep = made(size)
    against = (Guidance(4.0), small_cnn(), torch.tensor([1, 2])) if guided else None
    drawn = reconstruct(tiny(), images, keep, [1, 2], FEW, against)
    assert torch.equal(drawn.where(keep[:, None], torch.zeros(())), images.where(keep[:, None], torch.zeros(())))
    assert 0 <= float(drawn.min()) <= float(drawn.max()) <= 1
    changed = torch.where(keep[:, None], images, 1 - images)  # other hidden pixels
    assert torch.equal(reconstruct(tiny(), changed, keep, [1, 2], FEW, against), drawn)
    alone = reconstruct(tiny(), images[1:], keep[1:], [2], FEW, against and (*against[:2], against[2][1:]))
    torch.testing.assert_close(alone[0], drawn[1], atol=1e-5, rtol=0)


def test_guidance_at_another_size_lowers_the_class() -> None:
    images, keep = made((48, 48), 0.2)
    model, targets = small_cnn(), torch.tensor([1, 2])

    def left(scale: float) -> torch.Tensor:
        drawn = reconstruct(tiny(), images, keep, [1, 2], FEW, (Guidance(scale, "wide", at="guess"), model, targets))
        return read(model(drawn), targets, "probability")

    assert bool((left(40.0) < left(0.0)).all())


def test_nothing_removed_shows_the_picture_at_the_priors_resolution() -> None:
    images, keep = made((64, 64))
    against = (Guidance(0.0), small_cnn(), torch.tensor([1, 2]))
    drawn = reconstruct(tiny(), images, keep, [1, 2], FEW, against, "original")
    changed = torch.where(keep[:, None], images, 1 - images)
    assert not torch.equal(reconstruct(tiny(), changed, keep, [1, 2], FEW, against, "original"), drawn)


def test_a_known_cell_is_the_mean_of_its_kept_pixels() -> None:
    images = torch.zeros(1, 1, 4, 4)
    images[0, 0, :2, :2] = torch.tensor([[0.2, 0.9], [0.4, 0.9]])
    keep = torch.zeros(1, 4, 4, dtype=torch.bool)
    keep[0, :2, 0] = True
    small, known = shrunk(images, keep, 2)
    assert known.tolist() == [[[True, False], [False, False]]]
    assert float(small[0, 0, 0, 0]) == pytest.approx(0.3)
    assert float(small[0, 0, 1, 1]) == 0.5


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 12), st.integers(3, 12), st.integers(3, 12), st.integers(0, 2**31))
def test_gradients_come_back_by_the_adjoint(side: int, height: int, width: int, seed: int) -> None:
    dice = torch.Generator().manual_seed(seed)
    small = 0.25 + 0.5 * torch.rand(1, 2, side, side, generator=dice, dtype=torch.float64)
    keep = torch.rand(1, height, width, generator=dice) < 0.5
    frame, rows = Frame(torch.rand(1, 2, height, width, generator=dice, dtype=torch.float64), keep), torch.tensor([0])
    slopes = torch.randn(1, 2, height, width, generator=dice, dtype=torch.float64)
    step = torch.randn(small.shape, generator=dice, dtype=torch.float64) * 1e-3
    moved = frame.whole(small + step, rows) - frame.whole(small, rows)
    assert float((moved * slopes).sum()) == pytest.approx(
        float((frame.back(slopes, small, rows) * step).sum()), abs=1e-9
    )


def test_flat_pictures_come_back_flat() -> None:
    images, keep = torch.full((1, 3, 37, 53), 0.25), made((37, 53))[1][:1]
    small, _ = shrunk(images, keep, 16)
    assert float((laid_on(small, images, keep) - 0.25).abs().max()) < 0.26  # unknown cells are mid-grey
    whole, known = shrunk(images, torch.ones_like(keep), 16)
    assert bool(known.all())
    torch.testing.assert_close(laid_on(whole, images, keep), images)


def test_fud_counts_where_pictures_were_drawn() -> None:
    pictures = torch.rand(2, 3, 48, 48, generator=torch.Generator().manual_seed(1))
    batch = Batch(images=pictures, targets=torch.tensor([1, 2]), ids=("a", "b"))
    fud = Fud(tiny(), levels=(0.5, 0.2), draws=1, controls=("prior_only",))
    found = fud(attribute(small_cnn(), batch, Random()))
    assert found.details["drawn_at"].tolist() == [32.0, 32.0]
    assert bool(found.values.isfinite().all())
    own = Batch(images=pictures[..., :32, :32].contiguous(), targets=batch.targets, ids=batch.ids)
    assert "drawn_at" not in fud(attribute(small_cnn(), own, Random())).details
