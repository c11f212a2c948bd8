"""Work in several processes: all of it is done once, every finding arrives, and no process is left behind."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from networks import batch, small_cnn

from heatproof import engine
from heatproof.engine import machine
from heatproof.errors import BadInput
from heatproof.executors import local
from heatproof.executors.local import Elsewhere, WorkerLost, how_many, spread
from heatproof.methods.precomputed import Precomputed
from heatproof.methods.saliency import Saliency
from heatproof.occlusion.imputers.telea import Telea

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _not_for_ever() -> Iterator[None]:
    """A fork that waits for a thread it does not have would wait for good."""

    def give_up(*_: Any) -> None:
        raise TimeoutError("a worker hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_every_part_is_done_once_and_heard_and_two_are_done_at_a_time() -> None:
    meeting = multiprocessing.get_context("fork").Barrier(2)

    def work(part: int) -> Iterator[str]:
        if part < 2:
            meeting.wait(60)  # passed only if two are under way
        yield f"{part} begun"
        yield f"{part} done by {os.getpid()}"

    output = list(spread(work, range(7), 2))
    wanted = sorted(f"{i} {word}" for i in range(7) for word in ("begun", "done"))
    assert sorted(word.split(" by ")[0] for word in output) == wanted
    workers = {word.split(" by ")[1] for word in output if " by " in word}
    assert len(workers) == 2
    assert str(os.getpid()) not in workers
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(("parts", "workers"), [(1, 4), (3, 1), (0, 2)])
def test_without_need_no_process_is_started(parts: int, workers: int) -> None:
    assert list(spread(lambda part: iter([str(os.getpid())]), range(parts), workers)) == [str(os.getpid())] * parts


def test_a_worker_has_one_thread_and_leaves_the_cores_to_the_others() -> None:
    torch.set_num_threads(2)

    def work(part: int) -> Iterator[str]:
        yield f"{torch.get_num_threads()} {cv2.getNumThreads()} {engine.idle_cores()}"

    assert set(spread(work, range(3), 2)) == {"1 1 1"}
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_what_was_made_ready_before_does_not_hang_a_worker(threads: int) -> None:
    """Threads of the parent's libraries are gone in a fork: networks answer there as here."""
    torch.set_num_threads(threads)
    model, pictures = small_cnn(), batch(6)
    with engine.use(engine.Engine(backend="onnx")):
        logits, maps = engine.forward(model, pictures.images), Saliency()(model, pictures)
        cv2.GaussianBlur(pictures.images[0, 0].numpy(), (0, 0), 3.0)

        def work(part: int) -> Iterator[str]:
            same = torch.allclose(engine.forward(model, pictures.images), logits, atol=1e-5)
            yield f"{same} {torch.allclose(Saliency()(model, pictures), maps, rtol=1e-3, atol=1e-6)}"

        assert set(spread(work, range(4), 2)) == {"True True"}


def test_no_worker_waits_for_one_that_is_gone() -> None:
    model, pictures = small_cnn(), batch(2)
    held, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with engine.current().lock:
            held.set()
            enough.wait(120)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    try:
        answers = spread(lambda part: iter([str(engine.forward(model, pictures.images).shape[0])]), range(2), 2)
        assert list(answers) == ["2", "2"]
    finally:
        enough.set()
        other.join()


def test_workers_leave_ctrl_c_to_whoever_started_them() -> None:
    def work(part: int) -> Iterator[str]:
        os.kill(os.getpid(), signal.SIGINT)
        yield "still here"

    assert list(spread(work, range(2), 2)) == ["still here"] * 2


def test_an_error_is_raised_here_with_the_place_it_came_from_and_ends_the_others() -> None:
    def work(part: int) -> Iterator[str]:
        if part == 1:
            raise BadInput("part 1 will not do")
        time.sleep(60)
        yield "late"

    began = time.monotonic()
    with pytest.raises(BadInput, match="part 1 will not do") as raised:
        list(spread(work, range(3), 2))
    assert isinstance(raised.value.__cause__, Elsewhere)
    assert "test_local.py" in str(raised.value.__cause__)
    assert not multiprocessing.active_children()
    assert time.monotonic() - began < 55


def test_an_error_that_cannot_travel_arrives_in_words() -> None:
    class Odd(Exception):  # known in no other module
        pass

    def work(part: int) -> Iterator[str]:
        raise Odd("so odd")
        yield ""

    with pytest.raises(RuntimeError, match="Odd: so odd"):
        list(spread(work, range(2), 2))


@pytest.mark.parametrize(
    ("end", "output"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "stopped by signal SIGKILL, usually for want of memory"),
        (lambda: os._exit(3), "ended with status 3 in the middle of its work"),
        (lambda: sys.exit(0), "ended with status 0 in the middle of its work"),
    ],
)
def test_a_worker_that_is_lost_is_reported(end: Any, output: str) -> None:
    def work(part: int) -> Iterator[str]:
        yield "begun"
        end()

    with pytest.raises(WorkerLost, match=output):
        list(spread(work, range(2), 2))


def test_warnings_are_heard_here() -> None:
    def work(part: int) -> Iterator[str]:
        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        yield "done"

    with pytest.warns(UserWarning, match="mind the gap"):
        assert list(spread(work, range(2), 2)) == ["done", "done"]


def test_who_stops_listening_ends_the_workers() -> None:
    def work(part: int) -> Iterator[str]:
        yield "first"
        time.sleep(120)

    heard = spread(work, range(4), 2)
    assert next(heard) == "first"
    heard.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("threads", "environment", "device", "platform", "wanted"),
    [
        (1, None, "cpu", "linux", 3),
        (2, None, "cpu", "linux", 1),  # a large network: torch takes the cores itself
        (1, "1", "cpu", "linux", 1),
        (1, None, "cuda", "linux", 1),
        (1, None, "cpu", "darwin", 1),
    ],
)
def test_auto_takes_as_many_as_pay(
    threads: int, environment: str | None, device: str, platform: str, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 3)
    monkeypatch.setattr(local.sys, "platform", platform)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if environment is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", environment)
    torch.set_num_threads(threads)
    assert how_many("auto", torch.device(device)) == wanted


def test_a_number_stands_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert how_many(5, CPU) == 5


@pytest.mark.parametrize("wrong", [0, -1, "many", 1.5, True])
def test_other_numbers_of_workers_are_refused(wrong: Any) -> None:
    with pytest.raises(BadInput, match=r"workers must be a number of processes, at least 1, or 'auto'"):
        how_many(wrong, CPU)


def test_workers_on_another_device_are_refused() -> None:
    with pytest.raises(BadInput, match="got 2 on device cuda"):
        how_many(2, torch.device("cuda"))
    assert how_many(1, torch.device("cuda")) == 1


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_middle_of_a_start_is_heard_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    start = multiprocessing.context.ForkProcess.start

    def interrupted(process: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        start(process)
        begun.append(process.pid)

    monkeypatch.setattr(multiprocessing.context.ForkProcess, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(spread(lambda part: iter(["done"]), range(4), 2))
    assert len(begun) == 2
    assert not multiprocessing.active_children()


def test_threads_and_files_of_the_parent_are_not_used_again(tmp_path: Path) -> None:
    pictures = batch(3)
    keep = torch.ones(3, 32, 32, dtype=torch.bool)
    keep[:, 8:20, 8:20] = False
    np.savez(tmp_path / "maps.npz", **{name: np.full((32, 32), float(i)) for i, name in enumerate(pictures.ids)})
    stored = Precomputed(str(tmp_path / "maps.npz"))
    model = small_cnn()
    painted, maps = Telea()(pictures.images, keep), stored(model, pictures)

    def work(part: int) -> Iterator[str]:
        for _ in range(40):  # both read at the same time
            assert torch.equal(stored(model, pictures), maps)
        yield str(torch.equal(Telea()(pictures.images, keep), painted))
        yield str(engine.free_cores())

    assert sorted(spread(work, range(4), 2)) == ["1"] * 4 + ["True"] * 4


def test_a_worker_speaks_past_a_progress_bar_and_may_have_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())

    def work(part: int) -> Iterator[str]:
        child = multiprocessing.get_context("fork").Process(target=int)
        child.start()
        child.join()
        yield str((sys.stdout is sys.__stdout__, child.exitcode))

    assert set(spread(work, range(2), 2)) == {"(True, 0)"}


def test_a_warning_that_cannot_travel_arrives_in_words() -> None:
    class Odd(UserWarning):
        pass

    class Two(UserWarning):
        def __init__(self, one: str, two: str) -> None:
            super().__init__(one + two)

    def work(part: int) -> Iterator[str]:
        warnings.warn(Odd("so odd") if part else Two("in ", "two"), stacklevel=1)
        yield "done"

    with pytest.warns(UserWarning, match="so odd|in two") as heard:
        assert list(spread(work, range(2), 2)) == ["done", "done"]
    assert {str(one.message) for one in heard} == {"Odd: so odd", "Two: in two"}


def test_workers_are_ended_also_where_the_parent_ignores_that_signal() -> None:
    def work(part: int) -> Iterator[str]:
        if part == 1:
            raise BadInput("no")
        time.sleep(300)  # longer than the fixture waits
        yield "late"

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(BadInput, match="no"):
            list(spread(work, range(2), 2))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not multiprocessing.active_children()


ORPHANS = """
import os, time
from heatproof.executors.local import spread

def work(part):
    yield str(os.getpid())
    time.sleep(100)

for pid in spread(work, range(2), 2):
    print(pid, flush=True)
"""


def test_workers_end_with_whoever_started_them() -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        parent.kill()
    for worker in workers:
        while Path(f"/proc/{worker}").exists() and "Z" not in Path(f"/proc/{worker}/stat").read_text().split()[2]:
            time.sleep(0.1)  # the fixture's alarm ends this
