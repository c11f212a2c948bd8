"""The work that dominates whole protocols, each against bare passes of the network, on this machine, now.

    OMP_NUM_THREADS=1 python benchmarks/outliers.py [--parts passes,telea,road,counts,fixed] [--images 4] [--rounds 3]

`passes` gives CPU time on one core per picture that reaches the network, over that of a bare pass: 1.00 would be free.
Bare passes and contestants take turns, so a busy moment hits both; each ratio is the median of its rounds. `telea` is
wall time with every core there is. `road` holds the fill by multigrid against the exact one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from localisation import invented, naive
from scipy.stats import kendalltau
from torch import Tensor

from heatproof import data, engine, models
from heatproof.attribute import attribute
from heatproof.metrics._support.iou import exact_auc_iou, iou_curve
from heatproof.metrics.insertion_deletion import Deletion, Insertion
from heatproof.metrics.pixel_flipping import SRG
from heatproof.metrics.road import Road
from heatproof.metrics.sensitivity_n import SensitivityN
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.nearest import Nearest
from heatproof.occlusion.imputers.road import NoisyLinear
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.spec.parse import parse
from heatproof.types import Attribution, Batch, Images, Keep, Metric, Model

SIDE = 224
BARE = 64  # pictures of a bare pass
METHODS = ("saliency", "input_x_gradient", "integrated_gradients(steps=8)", "grad_cam", "edges", "centre", "random")
Clock = Callable[[], float]


def pictures(model: Model, count: int) -> Batch:
    """Embedded pictures enlarged, with what the model says of them as the target."""
    found = data.load(f"two_factor(size={SIDE})")
    step = max(1, len(found) // count)
    batch = found.batch(range(0, step * count, step))
    return batch.aimed(engine.forward(model, batch.images).argmax(1))


@dataclass(frozen=True)
class Work:
    """Metrics that share one occlusion: of a batch that nothing is known of yet."""

    metrics: tuple[Metric, ...]

    def run(self, judged: Attribution) -> int:
        """How many pictures reached the network."""
        fresh = replace(judged, batch=judged.batch.aimed(judged.batch.targets))
        for metric in self.metrics:
            metric(fresh)
        occlusions = {repr(metric.occlusion): metric.occlusion for metric in self.metrics}  # type: ignore[attr-defined]
        return sum(game_of(fresh.model, fresh.batch, each).evaluated for each in occlusions.values())


def ratios(judged: Attribution, work: dict[str, Work], rounds: int, clock: Clock) -> None:
    """Time per network picture over that of a bare pass, taken just before."""
    shown = judged.batch.images.repeat(-(-BARE // len(judged.batch)), 1, 1, 1)[:BARE]
    found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in work}
    for number in range(rounds + 1):  # the first only warms up
        for name, each in work.items():
            times = [clock()]
            engine.forward(judged.model, shown)
            times.append(clock())
            count = each.run(judged)
            times.append(clock())
            if number:
                found[name].append(((times[1] - times[0]) / BARE, (times[2] - times[1]) / count, count))
    for name, all_rounds in found.items():
        each_ratio = [whole / bare for bare, whole, _ in all_rounds]
        bare, whole = (1e3 * statistics.median(one[place] for one in all_rounds) for place in (0, 1))
        ratios_shown = " ".join(f"{ratio:.3f}" for ratio in each_ratio)
        print(
            f"  {name:36}{statistics.median(each_ratio):7.3f}   {whole:7.2f} ms against {bare:6.2f}"
            f"   {all_rounds[0][2]:5} pictures   rounds {ratios_shown}",
            flush=True,
        )


def passes(judged: Attribution, rounds: int) -> None:
    print("\nCPU time per network picture over a bare pass, on one core")
    ratios(
        judged,
        {
            "flipping, mean": Work((SRG(Occlusion(Mean(), Grid(5))),)),
            "flipping, nearest": Work((SRG(Occlusion(Nearest(), Grid(5))),)),
            "flipping, telea": Work((SRG(Occlusion(Telea(), Grid(5))),)),
            "ROAD": Work((Road(),)),
            "ROAD, mean fill": Work((Road(Occlusion(Mean(), Pixels(), 1)),)),
            "sensitivity-n": Work((SensitivityN(),)),
            "insertion and deletion": Work((Insertion(), Deletion())),
        },
        rounds,
        time.process_time,
    )


def exact_road(judged: Attribution) -> None:
    """The exact solver once: it takes long, and nothing depends on its second digit."""
    occlusion = Occlusion(NoisyLinear(solver="exact"), Pixels(), 1)
    ratios(judged, {"ROAD, exact": Work((Road(occlusion),))}, 1, time.process_time)


def telea(judged: Attribution, rounds: int) -> None:
    print(f"\nwall time per network picture over a bare pass, {engine.cores()} cores, torch has one")
    slow = {name: Work((SRG(Occlusion(each, Grid(5))),)) for name, each in (("telea", Telea()), ("nearest", Nearest()))}
    ratios(judged, {**slow, "ROAD": Work((Road(),))}, rounds, time.perf_counter)


@dataclass(frozen=True)
class SameNoise:
    """The exact fill with the default's noise: draws are keyed by the label."""

    label: ClassVar[str] = "road"
    random: ClassVar[bool] = True

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return NoisyLinear(solver="exact")(images, keep, seeds=seeds)


def road(model: Model, batch: Batch) -> None:
    """How far multigrid moves the model's answers and the methods' ranking, beside another draw of the noise."""
    print(f"\nROAD by multigrid against exact: {len(METHODS)} methods, {len(batch)} pictures")
    maps = [attribute(model, batch, parse("method", text)).maps for text in METHODS]
    fills = {
        "exact": (SameNoise(), batch),
        "multigrid": (NoisyLinear(), batch),
        "other noise": (NoisyLinear(), replace(batch, seed=batch.seed + 1)),
    }
    scores, answers = {}, {}
    for name, (fill, shown) in fills.items():
        metric = Road(Occlusion(fill, Pixels(), 1))
        judged = [Attribution(model, shown, fill, one) for one in maps]  # type: ignore[arg-type]
        scores[name] = torch.stack([metric(one).values for one in judged])
        answers[name] = game_of(model, shown, metric.occlusion)._memory.table[:, 0]
    for name in list(fills)[1:]:
        moved = abs(answers[name] - answers["exact"])
        pairs = zip(scores["exact"].T, scores[name].T, strict=True)
        tau = statistics.mean(kendalltau(one, other).statistic for one, other in pairs)
        whole = kendalltau(scores["exact"].mean(1), scores[name].mean(1)).statistic
        print(
            f"  {name:20} |Δp| mean {moved.mean():.5f}, largest {moved.max():.4f}; score |Δ| mean "
            f"{(scores[name] - scores['exact']).abs().mean():.5f}; ranking of the methods: Kendall's tau per picture "
            f"{tau:.3f}, of the means {whole:.3f}",
            flush=True,
        )


def counts(rounds: int) -> None:
    maps, regions = invented(64, SIDE)
    print(f"\n64 maps of {SIDE}², CPU milliseconds")
    runs: dict[str, Callable[[], Tensor]] = {
        "naive batch loop, 19 thresholds": partial(naive, maps, regions, 19),
        "IoU at 19 thresholds": partial(iou_curve, maps, regions, 19),
        "IoU at 99 thresholds": partial(iou_curve, maps, regions, 99),
        "exact integral": partial(exact_auc_iou, maps, regions),
    }
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(max(5, rounds)):
        for name, run in runs.items():
            before = time.process_time()
            run()
            taken[name].append(1e3 * (time.process_time() - before))
    for name, each in taken.items():
        print(f"  {name:36}{statistics.median(each):7.1f}   rounds {' '.join(f'{one:.1f}' for one in each)}")


def fixed(rounds: int) -> None:
    """CPU seconds of whole processes."""
    print("\nCPU seconds of a process")
    commands = {
        "list methods": ["-m", "heatproof.cli", "list", "methods"],
        "import heatproof": ["-c", "import heatproof"],
        "import torch": ["-c", "import torch"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, words in commands.items():
            before = os.times()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            if number:
                taken[name].append(sum(after[2:4]) - sum(before[2:4]))
    for name, each in taken.items():
        print(f"  {name:36}{statistics.median(each):7.2f}   rounds {' '.join(f'{one:.2f}' for one in each)}")


def on_one_core(parts: str, images: int, rounds: int) -> None:
    """A process of its own that may use one core only: what is painted there is painted by the one thread."""
    command = [sys.executable, __file__, "--parts", parts, "--images", str(images), "--rounds", str(rounds), "--pinned"]
    subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="passes,telea,road,counts,fixed")
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pinned", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    parts = words.parts.split(",")
    torch.set_num_threads(1)
    if words.pinned and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    elif "passes" in parts:
        on_one_core("passes", words.images, words.rounds)
        parts.remove("passes")
    if {"passes", "telea", "road"} & set(parts):
        model = models.load("efficientnet-lite0")
        batch = pictures(model, words.images)
        judged = attribute(model, batch, parse("method", "saliency"))
        if "passes" in parts:
            passes(judged, words.rounds)
            exact_road(judged)
        if "telea" in parts:
            telea(judged, words.rounds)
        if "road" in parts:
            road(model, batch)
    if "counts" in parts:
        counts(words.rounds)
    if "fixed" in parts:
        fixed(words.rounds)


if __name__ == "__main__":
    main()
