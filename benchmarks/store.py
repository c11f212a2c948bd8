"""What 225,000 units of work take in a run directory: files, going on, gathering the tables, ranking.

    python benchmarks/store.py [--pictures 10000]

The units are invented: 12 methods × 30 metrics on shards of 16 pictures, half of them with curves of nine points and a
further number each. Every step runs in a process of its own, which prints its CPU seconds and its peak memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from heatproof.results import Results
from heatproof.results.run_info import MethodInfo, MetricInfo, RunInfo
from heatproof.results.run_state import Record
from heatproof.run.census import ShardRecord
from heatproof.run.columns import Unit
from heatproof.run.store import Store
from heatproof.run.tables import write_tables
from heatproof.storage.atomic_file import sha256_of

METHODS = [f"method {at:02}" for at in range(12)]
METRICS = [f"metric {at:02}" for at in range(30)]
SHARD = 16
X = [at / 8 for at in range(9)]


def shards(pictures: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Key and picture ids of every shard."""
    for at in range(0, pictures, SHARD):
        yield f"{at:032x}", tuple(f"folder/picture_{one:06}.jpg" for one in range(at, min(at + SHARD, pictures)))


def units(pictures: int) -> Iterator[tuple[dict[str, str], str, tuple[str, ...]]]:
    """Place, key and picture ids of every unit."""
    for shard, ids in shards(pictures):
        for method in METHODS:
            for metric in METRICS:
                place = {"dataset": "photos", "model": "network", "method": method, "metric": metric}
                yield place, f"{shard[-16:]}{METHODS.index(method):08x}{METRICS.index(metric):08x}", ids


def fill(root: Path, pictures: int) -> None:
    """Put every unit, as the loop does: method `k` scores `k / 20` more than noise."""
    store, rng = Store(root), np.random.default_rng(0)
    for key, ids in shards(pictures):
        classes = tuple(f"class {at}" for at in range(len(ids)))
        store.put_record(
            ShardRecord(key, ids, classes, (True,) * len(ids), ((0.0, 1.0),) * len(ids), predicted=classes)
        )
    for place, key, ids in units(pictures):
        lift = METHODS.index(place["method"]) / 20
        values = (rng.random(len(ids)) + lift).tolist()
        curved = METRICS.index(place["metric"]) % 2 == 0
        lines = [[value * x for x in X] for value in values] if curved else None
        grid = [X] * len(ids) if curved else None
        beside = {"ties": values} if curved else {}
        store.put(key, Unit(ids, values, ["ok"] * len(ids), [""] * len(ids), 0.1, grid, lines, beside, "cpu"))
    store.flush()


def resume(root: Path, pictures: int) -> None:
    """What a run asks before it goes on: which units are not there, or failed."""
    store = Store(root)
    began = time.perf_counter()
    left = [key for _, key, ids in units(pictures) if store.failed(key, ids) is not False]
    left += [key for key, _ in shards(pictures) if not store.has_record(key)]
    assert not left
    print(f"  {time.perf_counter() - began:.1f} s to find all units")


def gather(root: Path, pictures: int) -> None:
    """Check all parts and write the tables, with what reading them needs beside them."""
    store = Store(root)
    assert store.check(((key, ids) for _, key, ids in units(pictures)), (key for key, _ in shards(pictures)))
    record = Record(root, resumed=False)
    files = write_tables(store, units(pictures))
    info = RunInfo(
        methods={name: MethodInfo(name=name) for name in METHODS},
        metrics={name: MetricInfo(name=name, higher_is_better=True) for name in METRICS},
    )
    store.put_json("info.json", info.plain())
    store.put_json("gallery.json", {"files": {}})
    store.put_json("study.json", {"studies": []})
    files |= {name: sha256_of(root / name) for name in ("info.json", "gallery.json", "study.json")}
    record.write("complete", results=files)


def rank(root: Path, pictures: int) -> None:
    """Read the results and rank the methods under one metric."""
    ranking = Results.load(root).ranking(METRICS[0])
    assert list(ranking) == METHODS[::-1] or pictures < 1_000  # few do not tell all of them apart


STEPS = {"fill": fill, "resume": resume, "gather": gather, "rank": rank}


def _peak() -> int:
    """The most memory this process had, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=int, default=10_000)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--root", type=Path)
    given = parser.parse_args()
    if given.step:
        began = time.process_time()
        STEPS[given.step](given.root, given.pictures)
        print(f"{given.step:7} {time.process_time() - began:7.1f} CPU s {_peak():6} MB")
        return
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            command = [sys.executable, __file__, "--root", folder, "--pictures", str(given.pictures), "--step", step]
            print(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout, end="", flush=True)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files) / 2**20
        print(f"{sum(1 for _ in units(given.pictures)):,} units: {len(files)} files, {size:.0f} MB")


if __name__ == "__main__":
    main()
