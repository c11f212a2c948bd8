"""What a second process brings: the same study by one worker and by one per core, each from an empty directory.

    python benchmarks/workers.py
    python benchmarks/workers.py --model efficientnet-lite0 --images PHOTOS --limit 32

The rounds take turns, and the middle one of each counts. The tables are compared too: they must be equal.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import pandas as pd

from heatproof import engine
from heatproof.run.loop import run
from heatproof.spec import from_options

METHODS = "saliency,integrated_gradients,smoothgrad,grad_cam,shapley,random"


def table(root: Path) -> pd.DataFrame:
    return pd.read_parquet(root / "scores.parquet").drop(columns="seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="embedded:object")
    parser.add_argument("--images", default="two_factor")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--metrics", default="srg,mif")
    parser.add_argument("--limit", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.pop("OMP_NUM_THREADS", None)
    studies = from_options.studies(
        models=[options.model],
        images=[options.images],
        masks="",
        methods=options.methods,
        metrics=options.metrics,
        protocols=None,
        trust_pickle=False,
        changes={"limit": options.limit, "seed": None, "target": None},
    )
    taken: dict[int, list[float]] = {1: [], engine.cores(): []}
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        run(studies, Path(folder) / "warm", workers=1)  # plans are made, pictures drawn
        for number in range(options.rounds):
            for workers, times in taken.items():
                out = Path(folder) / f"{workers}-{number}"
                begin = time.perf_counter()
                run(studies, out, workers=workers)
                times.append(time.perf_counter() - begin)
                tables.append(table(out))
    assert all(one.equals(tables[0]) for one in tables)
    middle = {workers: sorted(times)[len(times) // 2] for workers, times in taken.items()}
    print(f"{options.model}, {options.limit} images, {options.methods} under {options.metrics}; all tables are equal")
    for workers, seconds in middle.items():
        print(f"{workers:3} workers {seconds:8.1f} s   {middle[1] / seconds:5.2f} times as fast as one")


if __name__ == "__main__":
    main()
