"""Threads are lent for the time of a run, and only where they would be in each other's way."""

from __future__ import annotations

import dataclasses
import threading

import pytest
import torch
from networks import small_cnn

from heatproof.engine import machine, side_by_side, threads_for
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


def test_parts_are_done_side_by_side_and_answered_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "idle_cores", lambda: 3)
    meeting = threading.Barrier(3, timeout=60)  # passed only if three are under way at once

    def work(part: int) -> int:
        meeting.wait()
        return part * part

    assert side_by_side(work, range(6)) == [0, 1, 4, 9, 16, 25]
    assert side_by_side(work, []) == []


def test_an_error_in_one_part_is_the_error_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "idle_cores", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda part: 1 / part, [1, 0, 2])


@pytest.mark.parametrize(("number", "environment", "idle"), [(1, None, True), (2, None, False), (1, "1", False)])
def test_cores_idle_only_where_one_thread_was_lent(
    number: int, environment: str | None, idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 4)
    if environment is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", environment)
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        seen = set(side_by_side(lambda _: threading.get_ident(), range(8)))
    finally:
        torch.set_num_threads(before)
    assert (threading.get_ident() not in seen) == idle


def test_one_thread_may_be_demanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    torch.set_num_threads(2)
    with threads_for([dataclasses.replace(small_cnn(), view=View(224))], one=True):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
