"""Threads are lent for the time of a run, and only where they would be in each other's way."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from networks import small_cnn

from heatproof.models.engine import threads_for
from heatproof.types import View


@pytest.mark.parametrize(("size", "inside"), [(64, 1), (224, 2)])
def test_small_networks_run_on_one_thread(size: int, inside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(2)
    with threads_for([dataclasses.replace(small_cnn(), view=View(size))]):
        assert torch.get_num_threads() == inside
    assert torch.get_num_threads() == 2


def test_what_the_environment_says_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    torch.set_num_threads(2)
    with threads_for([dataclasses.replace(small_cnn(), view=View(64))]):
        assert torch.get_num_threads() == 2


def test_threads_come_back_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(2)
    lent = threads_for([dataclasses.replace(small_cnn(), view=View(64))])
    lent.__enter__()
    assert torch.get_num_threads() == 1
    error = KeyError("stop")
    assert not lent.__exit__(KeyError, error, None)
    assert torch.get_num_threads() == 2
