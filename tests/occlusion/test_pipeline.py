"""Pictures painted ahead by threads: the same bits, errors where they are due, nothing painted after the end."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pytest
import torch
from networks import batch, small_cnn

from heatproof import engine
from heatproof.occlusion import pipeline
from heatproof.occlusion.game import Game, Occlusion
from heatproof.occlusion.imputers.nearest import Nearest
from heatproof.occlusion.imputers.road import NoisyLinear
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.segmenters.grid import Grid


@pytest.fixture
def one_torch_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("imputer", [Telea(), Nearest(), NoisyLinear()])
def test_threads_paint_the_same_bits(imputer, monkeypatch, one_torch_thread):
    coalitions = torch.rand(3, 20, 25, generator=torch.Generator().manual_seed(0)) < 0.5
    model = small_cnn()
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(pipeline, "painters", lambda threads=threads: threads)
        monkeypatch.setattr(engine, "at_once", lambda images, micro: 8)  # several blocks, the last not full
        found.append(Game(model, batch(3), Occlusion(imputer, Grid(5), 2)).value(coalitions))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_blocks_come_in_order_and_the_next_one_is_painted_meanwhile(one_torch_thread):
    seen: list[int] = []
    with closing(pipeline.painted([[partial(seen.append, number)] for number in range(4)], 2)) as painted:
        for number in painted:
            until = time.monotonic() + 5
            while len(seen) < min(4, number + 2) and time.monotonic() < until:
                time.sleep(0.001)
            assert seen == list(range(min(4, number + 2)))  # never more than one block ahead


def test_nothing_is_painted_ahead_where_torch_has_all_cores(one_torch_thread):
    torch.set_num_threads(2)
    seen: list[int] = []
    with closing(pipeline.painted([[partial(seen.append, number)] for number in range(3)], 2)) as painted:
        for number in painted:
            time.sleep(0.01)
            assert seen == list(range(number + 1))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_is_raised_where_its_block_is_due(threads, one_torch_thread):
    def fail() -> None:
        raise ValueError("no paint left")

    painted = pipeline.painted([[lambda: None], [lambda: None, fail], [lambda: None]], threads)
    assert next(painted) == 0
    with pytest.raises(ValueError, match="no paint left"):
        next(painted)


def test_after_an_interrupt_no_thread_paints_any_more(one_torch_thread):
    running = threading.Semaphore(0)
    seen: list[float] = []

    def slow() -> None:
        running.release()
        time.sleep(0.05)
        seen.append(time.monotonic())

    def interrupted() -> None:
        with closing(pipeline.painted([[slow], [slow] * 20], 2)) as painted:
            for _ in painted:
                running.acquire()
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    ended = time.monotonic()
    time.sleep(0.2)
    assert len(seen) < 10
    assert all(each <= ended for each in seen)


def test_modes_of_the_caller_are_those_of_the_painters(one_torch_thread):
    found: list[tuple[bool, bool]] = []

    def look() -> None:
        found.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled()))

    for mode in (torch.inference_mode, torch.no_grad, torch.enable_grad):
        with mode():
            expected = (torch.is_inference_mode_enabled(), torch.is_grad_enabled())
            list(pipeline.painted([[look]], 2))
        assert found.pop() == expected


def test_a_worker_paints_by_itself(monkeypatch):
    monkeypatch.setattr("multiprocessing.parent_process", lambda: object())
    assert pipeline.painters() == 1
    names: list[str] = []
    list(pipeline.painted([[lambda: names.append(threading.current_thread().name)]], pipeline.painters()))
    assert names == [threading.current_thread().name]


def test_only_imputers_that_declare_it_meet_other_threads(monkeypatch, one_torch_thread):
    names: set[str] = set()

    @dataclass(frozen=True)
    class Watched:
        concurrent: ClassVar[bool] = False

        def __call__(self, images, keep, /, seeds=None):
            names.add(threading.current_thread().name)
            return images.where(keep[:, None], 0.5)

    @dataclass(frozen=True)
    class Declared(Watched):
        concurrent: ClassVar[bool] = True

    monkeypatch.setattr(pipeline, "painters", lambda: 2)
    for imputer, expected in ((Watched(), False), (Declared(), True)):
        names.clear()
        Game(small_cnn(), batch(2), Occlusion(imputer, Grid(2))).value(torch.eye(4).bool().expand(2, -1, -1))
        assert any(name.startswith("painter") for name in names) == expected
