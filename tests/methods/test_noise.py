"""Noise is normal, and belongs to its key alone."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import kstest

from heatproof.methods._support.keyed_noise import SMALL, fill_with_noise

SMALL_PICTURE, LARGE_PICTURE = (3, 64, 64), (3, 80, 80)


def noise(shape: tuple[int, ...], keys: list[int]) -> torch.Tensor:
    room = torch.full((len(keys), *shape), torch.nan)
    fill_with_noise(room, keys)
    return room


def test_the_sizes_lie_on_both_sides() -> None:
    assert torch.empty(SMALL_PICTURE).numel() <= SMALL < torch.empty(LARGE_PICTURE).numel()


@pytest.mark.parametrize("shape", [SMALL_PICTURE, LARGE_PICTURE])
def test_noise_is_normal_and_draws_do_not_know_each_other(shape: tuple[int, ...]) -> None:
    drawn = noise(shape, [7**n for n in range(1, 21)]).flatten(1)
    assert kstest(drawn.flatten().numpy()[::7], "norm").pvalue > 0.01
    assert float((drawn.mean(0) * len(drawn) ** 0.5).std()) == pytest.approx(1, abs=0.03)  # pixel by pixel
    alike = torch.corrcoef(drawn).fill_diagonal_(0)
    assert float(alike.abs().max()) < 5 / drawn.shape[1] ** 0.5


@pytest.mark.parametrize("shape", [SMALL_PICTURE, LARGE_PICTURE])
def test_a_key_has_its_noise_whatever_the_neighbours_and_the_memory(shape: tuple[int, ...]) -> None:
    wanted = noise(shape, [3, 11])
    assert torch.equal(noise(shape, [11, 5])[0], wanted[1])
    strided = torch.empty(2, *shape).to(memory_format=torch.channels_last)
    fill_with_noise(strided, [3, 11])
    assert torch.equal(strided, wanted)
    double = torch.empty(2, *shape, dtype=torch.float64)
    fill_with_noise(double, [3, 11])
    assert torch.equal(double, wanted.double())


@pytest.mark.parametrize("shape", [SMALL_PICTURE, LARGE_PICTURE])
def test_uniform_noise_is_uniform_and_no_twin_of_the_normal_one(shape: tuple[int, ...]) -> None:
    keys = [5**n for n in range(1, 21)]
    drawn = torch.empty(20, *shape)
    fill_with_noise(drawn, keys, uniform=True)
    assert 0 <= float(drawn.min()) < float(drawn.max()) < 1
    assert kstest(drawn.flatten().numpy()[::7], "uniform").pvalue > 0.01
    both = torch.cat([drawn.flatten(1), noise(shape, keys).flatten(1)])
    assert float(torch.corrcoef(both).fill_diagonal_(0).abs().max()) < 5 / both.shape[1] ** 0.5


def test_the_largest_key_stays_inside_the_table() -> None:
    assert bool(noise((1, 1, 1), [2**63 - 1, 2**22 - 1, 2**22]).isfinite().all())
    assert bool(noise(SMALL_PICTURE, [2**63 - 1, 2**22]).isfinite().all())
