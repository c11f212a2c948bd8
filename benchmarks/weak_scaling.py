"""Weak scaling: equal work per worker for 1, 2 and 4 workers, by the local pool and on Ray (1 and 2 pretend machines).

    python benchmarks/weak_scaling.py

Counts CPU seconds, not time: they hardly depend on what else the machine does. Each worker times its parts itself; its
first part is left out, since a worker then loads the model. `driver` is what the process that runs the loop spends, and
`start` what a Ray worker spends before its first part.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from heatproof import engine
from heatproof.executors import executor
from heatproof.run.engine_choices import engine_of, settle
from heatproof.run.findings import Rows
from heatproof.run.shards import shards
from heatproof.run.store import Store
from heatproof.run.task import Task, perform, tasks
from heatproof.spec.parse import parse
from heatproof.spec.study import Study

METHODS = ("saliency", "integrated_gradients(steps=16)", "smoothgrad(draws=8)", "grad_cam")
PARTS = 5  # of each worker


@dataclass(frozen=True)
class Timed:
    """What a worker spent on one part."""

    process: int
    scores: int
    seconds: float  # of its processor
    before: float  # that the process had spent when the part began


def timed(task: Task) -> Iterator[Any]:
    """The findings of a task, which cross to the driver as in a run, and what they cost."""
    before = time.process_time()
    scores = 0
    for found in perform(task):
        scores += len(found.unit.values) if isinstance(found, Rows) else 0
        yield found
    yield Timed(os.getpid(), scores, time.process_time() - before, before)


def measured(on: str, workers: int) -> tuple[float, float, float, float]:
    """Milliseconds per score in the workers (median of their parts) and in the driver, what a worker spends before its
    first part, and the scores of one part.
    """
    data = parse("dataset", f"two_factor(count={8 * PARTS * workers})")
    study = Study(["embedded:object"], [data], [parse("method", name) for name in METHODS], ["srg"], shard=8)
    with tempfile.TemporaryDirectory() as folder, engine_of("auto"), closing(executor(on)) as crew:
        count = crew.how_many(workers, torch.device("cpu"))
        todo = tasks(list(shards(study, torch.device("cpu"))), Store(Path(folder)))
        with engine.threads_for([task.shard.model for task in todo], one=True):
            settle([task.shard for task in todo], count)
            store, began, spent = Store(Path(folder)), time.process_time(), []
            for found in crew.spread(timed, todo, count):
                if isinstance(found, Timed):
                    spent.append(found)
                elif isinstance(found, Rows):
                    found.put(store)
            driver = time.process_time() - began
    first = {one.process: one for one in reversed(spent)}
    later = [one for one in spent if one is not first[one.process]]
    scores = sum(one.scores for one in spent)
    start = median(one.before for one in first.values()) if on == "ray" else 0.0
    if workers == 1 and on == "local":  # the loop itself did the work
        driver -= sum(one.seconds for one in spent)
    return (
        1000 * median(one.seconds / one.scores for one in later),
        1000 * driver / scores,
        start,
        scores / len(spent),
    )


def rows(nodes: int) -> Iterator[tuple[str, int, tuple[float, float, float, float]]]:
    if not nodes:
        for workers in (1, 2, 4):
            yield "local", workers, measured("local", workers)
        return
    import ray
    from ray.cluster_utils import Cluster

    per_node = {"num_cpus": 4 // nodes, "include_dashboard": False, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=per_node)
    for _ in range(nodes - 1):
        cluster.add_node(**{**per_node, "include_dashboard": None})
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        for workers in (1, 2, 4):
            if workers >= nodes:
                yield f"ray, {nodes} machine{'s' if nodes > 1 else ''}", workers, measured("ray", workers)
    finally:
        ray.shutdown()
        cluster.shutdown()


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # Ray's own spelling
    print("| executor | workers | CPU ms per score, workers | of local, 1 worker | driver | CPU s to start a worker |")
    print("|---|---:|---:|---:|---:|---:|")
    base = 0.0
    for nodes in (0, 1, 2):
        for name, workers, (each, driver, start, _) in rows(nodes):
            base = base or each
            started = f"{start:.1f}" if start else "a fork"
            print(f"| {name} | {workers} | {each:.2f} | {each / base:.2f} | {driver:.3f} | {started} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"\nThe driver held {peak:.0f} MB at most.")


if __name__ == "__main__":
    main()
