"""The Ray executor on a cluster of two machines with caches of their own: whatever is lost, the table is the local one.

The machines are pretended (`ray.cluster_utils`), the processes are not. One cluster serves the whole file.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import ray
import torch
from ray.cluster_utils import Cluster

from heatproof import registry
from heatproof.errors import BadInput
from heatproof.executors import executor
from heatproof.executors.ray import Ray, _Hand
from heatproof.results import Results
from heatproof.run.loop import run
from heatproof.spec.study import Study, load

STUDY = """
from dataclasses import dataclass
import os, signal
import heatproof
from heatproof.data.two_factor.dataset import TwoFactor

@heatproof.method
@dataclass(frozen=True)
class Bright:
    gain: float = 2.0
    def __call__(self, model, batch, /):
        return self.gain * batch.images.mean(1)

@heatproof.metric
@dataclass(frozen=True)
class Deadly:
    '''Kills the first process that meets it.'''
    flag: str
    higher_is_better = True
    def __call__(self, attribution, /):
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return attribution.maps.flatten(1).std(1)
        os.kill(os.getpid(), signal.SIGKILL)

def edges(model, batch):
    return batch.images.mean(1).diff(dim=2, prepend=batch.images.mean(1)[:, :, :1]).abs()

study = heatproof.Study(
    ["embedded:object", "FOLDER/net.py:factory"], [TwoFactor(count=8)],
    ["saliency", "smoothgrad(draws=2)", Bright(3.0), edges, "FOLDER/net.py:Dim"], ["mif", Deadly("FOLDER/flag")],
    shard=2, repeats=0,
)
"""

NET = """
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU())
        self.head = nn.Linear(4, 8)
    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))

def factory():
    return Own()
factory.size = 64

class Dim:
    def __call__(self, model, batch, /):
        return 1 - batch.images.mean(1)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    caches = tmp_path_factory.mktemp("caches")
    quiet = {"include_dashboard": False, "object_store_memory": 100_000_000}
    before = dict(os.environ)
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # else a busy machine hardly gets round to the workers
    os.environ["HEATPROOF_CACHE"] = str(caches / "head")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **quiet})
    os.environ["HEATPROOF_CACHE"] = str(caches / "other")
    cluster.other = cluster.add_node(num_cpus=1, **{**quiet, "include_dashboard": None})
    os.environ.clear()
    os.environ.update(before)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the user files lie, and the flag that a process met the deadly metric."""
    folder = tmp_path_factory.mktemp("home")
    for name, text in {"net.py": NET, "STUDY.py": STUDY}.items():
        (folder / name).write_text(text.replace("FOLDER", str(folder)))
    (folder / "flag").touch()
    return folder


@pytest.fixture(scope="module")
def study(home: Path) -> Iterator[Study]:
    registry.names("method")  # what is built in is known before the file adds to it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_entries", dict(registry._entries))
        yield load(home / "STUDY.py")[0]


def scores(results: Results) -> pd.DataFrame:
    assert results.complete
    return results.scores.drop(columns="seconds")


def actors_alive() -> int:
    """Workers that still hold a core, after a moment in which they may end."""
    for _ in range(60):
        held = ray.cluster_resources().get("CPU", 0) - ray.available_resources().get("CPU", 0)
        if not held:
            return 0
        time.sleep(0.5)
    return int(held)


def test_what_is_lost_is_done_again_and_the_table_is_the_local_runs(
    cluster: Cluster, study: Study, home: Path, tmp_path: Path
) -> None:
    """A worker ends by kill -9, and a machine disappears; user code, models and networks of user files came along."""
    local = run(study, tmp_path / "local", workers=2)
    (home / "flag").unlink()
    counts: list[tuple[int, int]] = []

    def watch(done: int, total: int, label: str) -> None:
        counts.append((done, total))
        if len(counts) == 20 and cluster.other is not None:
            cluster.remove_node(cluster.other, allow_graceful=False)
            cluster.other = None

    far = run(study, tmp_path / "ray", workers=2, on="ray", watch=watch)
    assert (home / "flag").exists()  # a worker met it and was killed
    assert cluster.other is None
    pd.testing.assert_frame_equal(scores(far), scores(local), check_exact=True)
    assert counts == [(done, 80) for done in range(1, 81)]
    assert actors_alive() == 0


def test_ctrl_c_ends_the_workers_and_keeps_what_is_finished(cluster: Cluster, study: Study, tmp_path: Path) -> None:
    def stop(done: int, total: int, label: str) -> None:
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path / "run", workers=1, on="ray", watch=stop)
    assert actors_alive() == 0
    counts: list[int] = []
    again = run(study, tmp_path / "run", watch=lambda done, *_: counts.append(done))
    assert again.complete
    assert counts == list(range(13, 81))


@pytest.mark.usefixtures("cluster")
def test_errors_and_warnings_come_as_they_are() -> None:
    def work(part: int) -> Iterator[str]:
        import warnings

        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        yield f"{part} {torch.get_num_threads()} {os.environ['OMP_NUM_THREADS']}"
        if part == 2:
            raise BadInput("part 2 will not do")

    crew = Ray()
    assert crew.how_many("auto", torch.device("cpu")) >= 1
    assert crew.how_many(1, torch.device("cpu")) == 1
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with pytest.warns(UserWarning, match="mind the gap"):
            assert list(crew.spread(work, range(2), 1)) == ["0 1 1", "1 1 1"]
        with pytest.raises(BadInput, match="part 2 will not do"):
            list(crew.spread(work, range(3), 1))
    finally:
        torch.set_num_threads(threads)
        crew.close()
    assert ray.is_initialized()  # the cluster is not its own


@pytest.mark.slow
def test_ctrl_c_on_the_command_line_leaves_nothing_running(home: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # the names of Ray's sockets are limited to 107 bytes
        environment = {**os.environ, "RAY_TMPDIR": short, "RAY_ADDRESS": "local", "RAY_worker_niceness": "0"}
        words = ["run", str(home / "STUDY.py"), "--on", "ray", "--workers", "2", "--out", str(tmp_path / "run")]
        command = [sys.executable, "-m", "heatproof.cli", *words]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while process.poll() is None and not any((tmp_path / "run").glob("*/**/*.*")):  # maps, or rows
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 130, output.decode()
        assert "Everything finished is kept" in output.decode()
        deadline = time.monotonic() + 60
        while (left := _running(f"RAY_TMPDIR={short}".encode())) and time.monotonic() < deadline:
            time.sleep(0.5)
        assert left == []


def _running(setting: bytes) -> list[str]:
    """Processes with this setting in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and setting in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().decode())
    return [command for command in found if command]  # those that ended and wait for their parent have none


@pytest.mark.parametrize("share", [0, -1, 1.5, True, "half"])
def test_other_shares_of_a_gpu_are_refused(share: Any) -> None:
    with pytest.raises(BadInput, match="gpus_per_worker must be a share of a GPU"):
        Ray(share)


NODES = [{"CPU": 8.0, "GPU": 4.0}, {"CPU": 3.0, "GPU": 1.0}, {"CPU": 16.0}]


@pytest.mark.parametrize(
    ("share", "device", "count", "place"),
    [
        (None, "cpu", 27, "cpu"),
        (None, "cuda", 5, "cuda"),
        (0.5, "cuda", 10, "cuda"),
        (0.5, "cpu", 10, "cuda"),  # the machine that starts the run needs no GPU
        (2, "cuda", 2, "cuda"),
    ],
)
def test_auto_is_a_worker_for_each_core_or_each_share_of_a_gpu(
    share: float | None, device: str, count: int, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ray, "_join", lambda self: None)
    monkeypatch.setattr(Ray, "_resources", lambda self: NODES)
    crew = Ray(share)
    assert crew.how_many("auto", torch.device(device)) == count
    assert crew._device.type == place


def test_workers_that_fit_nowhere_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ray, "_join", lambda self: None)
    monkeypatch.setattr(Ray, "_resources", lambda self: NODES[2:])
    with pytest.raises(BadInput, match="no machine of the Ray cluster has 1 GPU for a worker"):
        Ray().how_many("auto", torch.device("cuda"))
    with pytest.raises(BadInput, match="workers must be a number of processes"):
        Ray().how_many(0, torch.device("cpu"))


def test_the_first_worker_of_another_kind_of_machine_begins_alone() -> None:
    first, second, known = _Hand(None, None, "a gpu"), _Hand(None, None, "a gpu"), {"cpu here"}
    crew = Ray()
    crew._hands = [first, second, _Hand(None, None, "cpu here", part=3), _Hand(None, None, "cpu here")]
    assert crew._may_begin(first, known)
    assert crew._may_begin(crew._hands[3], known)
    first.part = 0
    assert not crew._may_begin(second, known)
    assert crew._may_begin(second, known | {"a gpu"})


def test_its_name_finds_it() -> None:
    assert isinstance(executor("ray"), Ray)


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from heatproof.errors import Missing

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Missing, match=r"pip install 'heatproof\[ray\]'"):
        Ray().how_many(1, torch.device("cpu"))
