"""Regions lent to other pictures: whole, once, never to oneself, and the same whoever is requested beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from heatproof.data._support.other_region import OTHER_REGION, lender
from heatproof.data.cutouts import Cutouts
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.data.two_factor.k_dataset import TwoFactorK
from heatproof.types import Dataset


@pytest.fixture
def pasted(tmp_path: Path) -> Cutouts:
    dice = np.random.default_rng(0)
    for part, channels in (("things", 4), ("rooms", 3)):
        for name in ("a", "b"):
            (tmp_path / part / name).mkdir(parents=True)
            pixels = dice.integers(128, 256, (40, 20 if name == "a" else 40, channels), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / part / name / "0.png")
    return Cutouts(str(tmp_path / "things"), str(tmp_path / "rooms"), count=8, size=64)


def lent(dataset: Dataset, indices: list[int]) -> torch.Tensor:
    return dataset.batch(indices).labels[OTHER_REGION]


def swapped(dataset: Dataset) -> None:
    batch = dataset.batch(range(8))
    assert batch.regions is not None
    for i in range(8):
        assert torch.equal(batch.labels[OTHER_REGION][i], batch.regions[lender(i)])
        assert not torch.equal(batch.labels[OTHER_REGION][i], batch.regions[i])
    assert torch.equal(lent(dataset, [5, 2]), batch.labels[OTHER_REGION][[5, 2]])
    assert lent(dataset, []).shape == (0, 64, 64)


def test_neighbours_swap_their_regions(pasted: Cutouts) -> None:
    for dataset in (TwoFactor(count=8), TwoFactorK(count=8, scenes="anchor"), pasted):
        swapped(dataset)


def test_the_last_of_an_odd_number_has_a_neighbour_too() -> None:
    assert torch.equal(lent(TwoFactor(count=7), [6]), lent(TwoFactor(count=8), [6]))


def test_pictures_with_an_object_are_lent_the_region_of_one() -> None:
    batch = TwoFactorK(3, count=20).batch(range(20))
    assert batch.regions is not None
    shown, given = (one.flatten(1).any(1) for one in (batch.regions, batch.labels[OTHER_REGION]))
    assert torch.equal(shown, given)
    assert 0 < int(shown.sum()) < 20


def test_a_lender_that_changes_changes_the_digest_and_one_that_is_broken_lends_nothing(pasted: Cutouts) -> None:
    batch = pasted.batch(range(8))
    first = next(i for i in range(8) if batch.labels["object"][i] != batch.labels["object"][lender(i)])
    other = Path(pasted.objects) / "ab"[int(batch.labels["object"][lender(first)])] / "0.png"
    before = pasted.digest([first])
    other.write_bytes(b"no picture")
    assert pasted.digest([first]) != before
    alone = pasted.batch([first])
    assert len(alone) == 1
    assert not bool(alone.labels[OTHER_REGION].any())
