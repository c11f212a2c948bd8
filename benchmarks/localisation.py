"""IoU over thresholds: one sort against one pass per threshold, on this machine, now.

    python benchmarks/localisation.py [--maps 64] [--side 224] [--rounds 5]

The naive loop compares every map with every threshold, intersects, unites and counts, in numpy. Contestants
take turns, so a busy moment hits all alike; each is given by the median of its rounds in CPU time of one
thread. All of them are checked against the naive loop first.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from heatproof.metrics._support.iou import exact_auc_iou, iou_curve, threshold_grid

COUNTS = (19, 99, 499)


def naive(maps: Tensor, regions: Tensor, thresholds: int) -> Tensor:
    levels = threshold_grid(thresholds).numpy().astype(np.float32)
    curves = np.empty((len(maps), len(levels)))
    for b, (heat, region) in enumerate(zip(maps.numpy(), regions.numpy(), strict=True)):
        for k, level in enumerate(levels):
            found = heat >= level
            union = (found | region).sum()
            curves[b, k] = (found & region).sum() / union if union else 1.0
    return torch.from_numpy(curves)


def invented(count: int, side: int) -> tuple[Tensor, Tensor]:
    """Maps with many cold and few hot pixels, ties planted on the thresholds, and discs of all sizes."""
    dice = np.random.default_rng(0)
    maps = dice.random((count, side, side), dtype=np.float32) ** 3
    ties = dice.random(maps.shape) < 0.05
    maps[ties] = np.round(maps[ties] * 20) / np.float32(20)
    rows, columns = np.mgrid[:side, :side] / side
    y, x, radius = (dice.uniform(low, high, (count, 1, 1)) for low, high in ((0.2, 0.8), (0.2, 0.8), (0.06, 0.4)))
    return torch.from_numpy(maps), torch.from_numpy((rows - y) ** 2 + (columns - x) ** 2 < radius**2)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--maps", type=int, default=64)
    words.add_argument("--side", type=int, default=224)
    words.add_argument("--rounds", type=int, default=5)
    requested = words.parse_args()
    torch.set_num_threads(1)
    maps, regions = invented(requested.maps, requested.side)
    runs: dict[str, Callable[[], Tensor]] = {}
    for count in COUNTS:
        if not torch.equal(naive(maps[:8], regions[:8], count), iou_curve(maps[:8], regions[:8], count)):
            raise SystemExit(f"the curves differ from the naive loop at K = {count}")
        runs[f"naive, K = {count}"] = partial(naive, maps, regions, count)
        runs[f"sorted, K = {count}"] = partial(iou_curve, maps, regions, count)
    runs["exact integral"] = partial(exact_auc_iou, maps, regions)
    seconds: dict[str, list[float]] = {label: [] for label in runs}
    for _ in range(requested.rounds):
        for label, run in runs.items():
            before = time.process_time()
            run()
            seconds[label].append(time.process_time() - before)
    middle = {label: statistics.median(each) for label, each in seconds.items()}
    print(f"{requested.maps} maps of {requested.side}², median of {requested.rounds} rounds, CPU time of one thread")
    print(f"{'':20}{'ms':>10}{'times faster than the naive loop at this K':>46}")
    for label, each in middle.items():
        rival = middle[f"naive, {label.partition(', ')[2]}"] if "K =" in label else middle["naive, K = 19"]
        print(f"{label:20}{1e3 * each:10.1f}{rival / each:46.1f}")
    print("The exact integral is held against the naive loop at K = 19.")


if __name__ == "__main__":
    main()
