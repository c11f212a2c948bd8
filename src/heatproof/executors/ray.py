"""The Ray executor: parts of the work spread over the machines of a cluster, one part at a time per worker.

Joins the cluster that RAY_ADDRESS names or that runs on this machine, else starts one here for the time of the run.
A worker is a Ray actor that keeps the models it has loaded. A part whose worker or machine was lost is done again.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from heatproof import engine
from heatproof._version import __version__
from heatproof.errors import BadInput, Missing
from heatproof.executors import Found, Part, Workers
from heatproof.executors._support.portable import Elsewhere, WorkerLost
from heatproof.spec.study import Study

if TYPE_CHECKING:
    from heatproof.executors._support.parcels import Packer

TRIES = 3  # times that a part, or the start of a worker, may be lost before the run gives up
PATIENCE = 120.0  # seconds without any worker before a warning


@dataclass(eq=False)
class _Hand:
    """A worker as the driver sees it."""

    actor: Any
    awaited: Any  # its greeting, then what it finds in its part; None while it has nothing to do
    place: str = ""  # its kind of machine, once it has greeted
    part: int | None = None


@dataclass(eq=False)
class Ray:
    """Workers on a Ray cluster. With `gpus_per_worker` each has that share of a GPU, and two may share one with 0.5;
    default: a GPU each where the run's device is a GPU, else a core each.
    """

    gpus_per_worker: float | None = None
    _device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    _joined: bool = False  # whether this object connected to the cluster, and so disconnects
    _hands: list[_Hand] = field(default_factory=list)
    _packer: Packer | None = None
    _parcels: dict[str, Any] = field(default_factory=dict)  # references to them in the cluster

    def __post_init__(self) -> None:
        share = self.gpus_per_worker
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if share is not None and not (number and share > 0 and (share <= 1 or share == int(share))):
            raise BadInput(f"gpus_per_worker must be a share of a GPU (0.5) or whole GPUs (1, 2), got {share!r}")

    def how_many(self, requested: Workers, device: torch.device) -> int:
        """The number of workers: `auto` is one for each core of the cluster, or for each GPU or share of one."""
        if requested != "auto" and (isinstance(requested, bool) or not isinstance(requested, int) or requested < 1):
            raise BadInput(f"workers must be a number of processes, at least 1, or 'auto', got {requested!r}")
        self._join()
        self._device = torch.device("cuda") if self._gpus(device) else device
        if requested != "auto":
            return requested
        gpus = self._gpus(device)
        each, resource = (gpus, "GPU") if gpus else (1.0, "CPU")
        count = int(sum(have.get(resource, 0.0) // each for have in self._resources()))
        if count < 1:
            raise BadInput(f"no machine of the Ray cluster has {each:g} {resource} for a worker, which this run needs")
        return count

    def check(self, study: Study) -> None:
        """Raises `BadInput`, by name, for what cannot be packed."""
        from heatproof.executors._support.parcels import refuse

        refuse(study)

    def spread(self, work: Callable[[Part], Iterator[Found]], parts: Sequence[Part], workers: int) -> Generator[Found]:
        """Yields what `work` yields for every part, as soon as it comes; `workers` parts are under way at a time."""
        import ray
        from ray.exceptions import RayError

        waiting, losses = deque(range(len(parts))), Counter[int]()
        threads = torch.get_num_threads() if workers == 1 else 1
        known = {engine.place(torch.device("cpu"))}  # kinds of machines whose engine choices are made
        began, warned = time.monotonic(), False
        try:
            while waiting or any(hand.part is not None for hand in self._hands):
                under_way = sum(hand.part is not None for hand in self._hands)
                self._hire(min(workers, len(waiting) + under_way), threads)
                for hand in self._hands:
                    if waiting and hand.awaited is None and self._may_begin(hand, known):
                        hand.part = waiting.popleft()
                        hand.awaited = self._begin(hand, (work, parts[hand.part]))
                awaited = [hand.awaited for hand in self._hands if hand.awaited is not None]
                ready, _ = ray.wait(awaited, num_returns=1, timeout=5.0)
                if not (warned or any(hand.place for hand in self._hands)) and time.monotonic() - began > PATIENCE:
                    warned = True
                    free = ray.available_resources()
                    warnings.warn(
                        f"no worker could start for {PATIENCE:g} s: the cluster has {free.get('CPU', 0):g} free cores "
                        f"and {free.get('GPU', 0):g} free GPUs; the run waits for them",
                        stacklevel=2,
                    )
                for hand in [hand for hand in self._hands if any(hand.awaited is one for one in ready)]:
                    part = hand.part
                    try:
                        yield from self._received(hand, known)
                    except RayError as error:
                        self._dismiss(hand)
                        losses[-1 if part is None else part] += 1
                        if losses[-1 if part is None else part] >= TRIES:
                            raise WorkerLost(_lost(part, error)) from error
                        if part is not None:
                            waiting.appendleft(part)
        except BaseException:
            self._dismiss(*self._hands)  # they are in the middle of something
            raise

    def close(self) -> None:
        """Ends the workers and leaves the cluster; one that was started for the run ends, too."""
        self._dismiss(*self._hands)
        self._packer = None
        self._parcels.clear()
        if self._joined:
            import ray

            ray.shutdown()
            self._joined = False

    def _gpus(self, device: torch.device) -> float:
        return self.gpus_per_worker or (1.0 if device.type == "cuda" else 0.0)

    def _join(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a run reports to no one
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise Missing.package("ray", "ray", "--on ray") from None
        if ray.is_initialized():
            return
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except ConnectionError as error:
            raise BadInput(
                f"the Ray cluster at {os.environ.get('RAY_ADDRESS', 'the address found on this machine')} does not "
                f"answer ({error}): start it (ray start --head), or unset RAY_ADDRESS to run on this machine"
            ) from error
        self._joined = True

    def _resources(self) -> list[dict[str, float]]:
        import ray

        return [node["Resources"] for node in ray.nodes() if node["Alive"]]

    def _hire(self, count: int, threads: int) -> None:
        """Start workers until there are so many; each gets parts once it has greeted."""
        import ray

        from heatproof.executors._support.ray_worker import RayWorker

        cores = min(threads, int(max(have.get("CPU", 1.0) for have in self._resources()))) if threads > 1 else 1
        kind = ray.remote(RayWorker).options(
            num_cpus=max(1, cores), num_gpus=self._gpus(self._device), max_restarts=0, scheduling_strategy="SPREAD"
        )
        while len(self._hands) < count:
            actor = kind.remote(str(self._device), threads, engine.current().kind, __version__)
            self._hands.append(_Hand(actor, actor.greeting.remote()))

    def _may_begin(self, hand: _Hand, known: set[str]) -> bool:
        """The first worker of a kind of machine that the driver is not begins alone: it makes the engine choices, which
        the others of its kind then have."""
        alike = [one for one in self._hands if one.place == hand.place and one.part is not None]
        return hand.place in known or not alike

    def _begin(self, hand: _Hand, part: object) -> Any:
        import ray

        from heatproof.executors._support.parcels import Packer

        self._packer = self._packer or Packer()
        packed = self._packer.pack(part)
        for key, parcel in self._packer.parcels.items():
            self._parcels[key] = ray.put(parcel)
        self._packer.parcels.clear()
        record = engine.current().record()
        return hand.actor.work.options(num_returns="streaming").remote(packed, self._parcels, record)

    def _received(self, hand: _Hand, known: set[str]) -> Iterator[Any]:
        """The next message of a worker: what it found, if that is what it is."""
        import ray

        if hand.part is None:
            hand.place, hand.awaited = ray.get(hand.awaited), None
            return
        try:
            kind, what = ray.get(next(hand.awaited))
        except StopIteration:
            hand.part = hand.awaited = None
            known.add(hand.place)
            return
        if kind == "failed":
            error, trace = what
            raise error from Elsewhere(f"in a worker:\n{trace}")
        if kind == "warned":
            warnings.warn(what, stacklevel=4)
        else:
            yield what

    def _dismiss(self, *hands: _Hand) -> None:
        import ray

        for hand in hands:
            self._hands.remove(hand)
            if ray.is_initialized():
                ray.kill(hand.actor, no_restart=True)


def _lost(part: int | None, error: Exception) -> str:
    reasons = str(error).strip().splitlines() or [type(error).__name__]
    reason = reasons[-1 if part is None else 0].strip()  # of a worker that cannot start, the last line says why
    if part is None:
        return f"workers cannot start on the Ray cluster ({reason}): is this heatproof installed on all its machines?"
    return (
        f"{TRIES} workers were lost at the same part of the work ({reason}), usually for want of memory: everything "
        "finished is kept, and the same command goes on from there; fewer workers need less"
    )
