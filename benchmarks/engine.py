"""Images per second: the engine against plain `model(x)` loops, on this machine, now.

    python benchmarks/engine.py [--threads N] [--rounds N]

Plain loops run in NCHW at batch 1, 8, 32 and 64 without gradients; the engine runs eagerly and by ONNX
Runtime, each after its one-time measurement, which shows in the first call. Rounds are interleaved, so a busy
moment hits all alike; each contestant is given by the median of its rounds. On a machine that others use too,
compare CPU time with one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable

import torch

from heatproof import engine
from heatproof.models import load
from heatproof.types import Images, Model

PLAIN = (1, 8, 32, 64)
BACKENDS = ("eager", "onnx")


def plain(model: Model, images: Images, size: int) -> Callable[[], None]:
    def run() -> None:
        with torch.no_grad():
            for rows in torch.split(images, size):
                model(rows)

    return run


def by_engine(model: Model, images: Images, backend: str) -> Callable[[], None]:
    owner = engine.Engine(backend)

    def run() -> None:
        with engine.use(owner):
            engine.forward(model, images)
        engine.current().adopt(owner.choices)  # to be printed

    return run


def compare(name: str, side: int, count: int, rounds: int) -> None:
    model = load(name)
    images = torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(0))
    contestants = {f"plain, batch {size}": plain(model, images, size) for size in PLAIN}
    contestants |= {f"engine, {backend}": by_engine(model, images, backend) for backend in BACKENDS}
    first = {}
    for label, run in contestants.items():
        before = time.perf_counter()
        run()
        first[label] = time.perf_counter() - before
    seconds: dict[str, list[tuple[float, float]]] = {label: [] for label in contestants}
    for _ in range(rounds):
        for label, run in contestants.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            seconds[label].append((time.perf_counter() - wall, time.process_time() - cpu))
    rate = {label: count / statistics.median(wall for wall, _ in times) for label, times in seconds.items()}
    best = max(rate[f"plain, batch {size}"] for size in PLAIN)
    threads = torch.get_num_threads()
    print(f"\n{name}, {side}×{side}, {count} images, {threads} threads, median of {rounds} rounds")
    print(f"{'':18}{'images/s':>10}{'of best plain':>15}{'CPU ms/image':>14}{'first call':>12}")
    for label, value in rate.items():
        cpu = statistics.median(cpu for _, cpu in seconds[label]) / count * 1e3
        print(f"{label:18}{value:10.1f}{value / best:14.2f}×{cpu:14.2f}{first[label]:10.1f} s")
    for question, choice in engine.current().record().items():
        print("  ", question.split(" | ")[-2], choice)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=5)
    requested = parser.parse_args()
    torch.set_num_threads(requested.threads)
    with tempfile.TemporaryDirectory() as fresh:  # so that the first call shows what measuring costs
        os.environ["HEATPROOF_CACHE"] = fresh
        compare("embedded:object", 64, 512, requested.rounds)
        compare("efficientnet-lite0", 224, 64, requested.rounds)


if __name__ == "__main__":
    main()
