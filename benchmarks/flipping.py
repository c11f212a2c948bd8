"""What pixel flipping costs: overhead over bare passes, against Quantus and a plain loop, and how it grows.

    python benchmarks/flipping.py [--parts overhead,contest,growth] [--photos DIR] [--images 16]

Times are wall seconds with CPU seconds in brackets; on a busy machine the CPU seconds are the ones to compare.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heatproof import data, engine, models
from heatproof.attribute import attribute
from heatproof.metrics.pixel_flipping import LIF, MIF
from heatproof.occlusion.flip_order import lots, pooled, random_curves, removal_ranks, removals
from heatproof.occlusion.game import Game, Occlusion, game_of
from heatproof.occlusion.imputers.histogram import Histogram
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.imputers.train_set import TrainSet
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.types import Attribution, Batch, Maps, Model, View

METHODS = ("saliency", "input_x_gradient", "integrated_gradients(steps=8)", "grad_cam", "edges", "centre", "random")
SIDE = 220  # five segments of 44 pixels: Quantus wants steps that divide the picture
ORDERS = 5


@dataclass
class Spent:
    wall: float = 0.0
    cpu: float = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu

    def __str__(self) -> str:
        return f"{self.wall:8.2f} s ({self.cpu:.2f})"


def pictures(model: Model, photos: str, count: int) -> Batch:
    """Photos, or embedded pictures enlarged, with what the model says of them as the target."""
    found = data.load(photos, view=View(SIDE, SIDE)) if photos else data.load(f"two_factor(size={SIDE})")
    step = max(1, len(found) // count)
    batch = found.batch(range(0, step * count, step))
    return batch.aimed(engine.forward(model, batch.images).argmax(1))


def overhead(model: Model, batch: Batch, photos: str) -> None:
    """Wall time of the game over bare passes of the very same occluded images."""
    print("\n(a) overhead over bare passes, 25 segments, one map, both directions")
    maps = torch.rand(len(batch), SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    plain = engine.forward
    donors = photos or f"two_factor(split=train, size={SIDE}, count=100)"
    for imputer in (Mean(), TrainSet(donors, 100), Histogram(), Telea()):
        occlusion = Occlusion(imputer, Grid(5), draws=1)
        bare, whole = Spent(), Spent()

        def watched(*question: Any, bare: Spent = bare) -> Tensor:
            with bare.watching():
                return plain(*question)

        requested = attribute(model, batch, lambda model, batch: maps)
        if isinstance(imputer, TrainSet):  # donors are read once in a run
            imputer(batch.images, maps > 2, seeds=Game(model, batch, occlusion)._seeds(0))
        engine.forward = watched
        with whole.watching():
            MIF(occlusion)(requested)
            LIF(occlusion)(requested)
        engine.forward = plain
        count = game_of(model, batch, occlusion).evaluated
        ratio = f"wall {whole.wall / bare.wall:.3f}, CPU {whole.cpu / bare.cpu:.3f}"
        print(f"  {recipe.label(imputer)[:40]:40} {whole} for {count} images; over bare: {ratio}")


def ours(model: Model, batch: Batch, maps: list[Maps], occlusion: Occlusion) -> int:
    """MIF and LIF of every map and the random baseline; how many images that took."""
    for one in maps:
        requested = Attribution(model, batch, Mean(), one)  # type: ignore[arg-type]
        MIF(occlusion, points=26)(requested)
        LIF(occlusion, points=26)(requested)
    game = game_of(model, batch, occlusion)
    random_curves(game, removals(game.counts, "linear", 26), ORDERS)
    return game.evaluated


def orders_of(model: Model, batch: Batch, maps: list[Maps], occlusion: Occlusion) -> list[Tensor]:
    """(B, 25) removal places of every map, both ways, and of the random orders: the same work for everybody."""
    game = Game(model, batch, occlusion)
    luck = lots(batch, game.counts, "ties")
    ranks = [removal_ranks(pooled(game, one) * sign, luck) for one in maps for sign in (1, -1)]
    return ranks + [lots(batch, game.counts, f"random order {draw}") for draw in range(ORDERS)]


def plain_loop(model: Model, batch: Batch, orders: list[Tensor], occlusion: Occlusion) -> None:
    """What one would write: per order and image all 26 steps in one batch, in the network's own layout."""
    segments = occlusion.segmenter(batch.images)
    colour = torch.tensor((0.485, 0.456, 0.406)).view(3, 1, 1)
    with torch.inference_mode():
        for ranks in orders:
            for image, target, labels, rank in zip(batch.images, batch.targets, segments, ranks, strict=True):
                keep = torch.stack([rank[labels] >= k for k in range(26)])
                y = model(torch.where(keep[:, None], image, colour)).softmax(1)[:, target]
                torch.trapezoid(y, dx=1 / 25)


def quantus_loop(model: Model, batch: Batch, orders: list[Tensor], occlusion: Occlusion) -> None:
    """Quantus' pixel flipping, a segment's worth of pixels per step."""
    import quantus

    metric = quantus.PixelFlipping(
        features_in_step=SIDE * SIDE // 25, perturb_baseline="mean", abs=False, normalise=False,
        display_progressbar=False, disable_warnings=True,
    )  # fmt: skip
    inputs = model.normalised(batch.images).numpy()
    segments = occlusion.segmenter(batch.images)
    for ranks in orders:
        maps = torch.stack([-rank[labels].float() for rank, labels in zip(ranks, segments, strict=True)])
        metric(
            model=model.network, x_batch=inputs, y_batch=batch.targets.numpy(), a_batch=maps[:, None].numpy(),
            device="cpu", batch_size=len(batch), softmax=True, channel_first=True,
        )  # fmt: skip


def contest(model: Model, batch: Batch) -> None:
    """7 methods × (MIF + LIF) + 5 random orders, 25 segments."""
    print(f"\n(b) {len(METHODS)} methods × MIF + LIF, {ORDERS} random orders, 25 segments, {len(batch)} images")
    occlusion = Occlusion(Mean(), Grid(5))
    maps = [attribute(model, batch, parse("method", text)).maps for text in METHODS]
    orders = orders_of(model, batch, maps, occlusion)
    times: dict[str, Spent] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        times[name] = Spent()
        with times[name].watching():
            found = work()
        print(f"  {name:34} {times[name]}", flush=True)
        return found

    timed("Quantus PixelFlipping", lambda: quantus_loop(model, batch, orders, occlusion))
    timed("plain loop", lambda: plain_loop(model, batch, orders, occlusion))
    count = 0
    for backend in ("eager", "onnx"):
        with engine.use(engine.Engine(backend)):
            engine.forward(model, batch.images)  # measured and exported before the clock starts
            fresh = batch.aimed(batch.targets)
            count = timed(f"heatproof, {backend}", lambda fresh=fresh: ours(model, fresh, maps, occlusion))
    requested = len(orders) * 26 * len(batch)
    print(f"  passes: {requested} asked, {count} made: shared coalitions save {1 - count / requested:.1%}")
    fastest = min(times[name].wall for name in ("Quantus PixelFlipping", "plain loop"))
    for backend in ("eager", "onnx"):
        spent = times[f"heatproof, {backend}"].wall
        per_pass = (fastest / requested) / (spent / count)
        gain = f"{fastest / spent:.2f}× the faster of the two"
        print(f"  {backend}: {gain}; {per_pass:.2f}× per pass from layout and back-end")


def one_point(images: int, methods: int, side: int) -> None:
    """Print seconds and peak memory of one size, measured in a process of its own."""
    torch.set_num_threads(1)
    model = models.load("embedded:object")
    batch = data.load("two_factor").batch(range(images))
    occlusion = Occlusion(Mean(), Grid(side))
    maps = [torch.rand(images, 64, 64, generator=torch.Generator().manual_seed(i)) for i in range(methods)]
    engine.forward(model, batch.images)
    spent = Spent()
    with spent.watching():
        count = ours(model, batch, maps, occlusion)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"wall": spent.wall, "cpu": spent.cpu, "images": count, "peak": peak}))


def growth() -> None:
    print("\n(c) growth on the embedded model (64×64, 26 steps, one thread, each in a process of its own)")
    sizes = [(8, 4, 5), (16, 4, 5), (32, 4, 5), (64, 4, 5), (16, 1, 5), (16, 8, 5), (16, 16, 5)]
    for images, methods, side in [*sizes, (16, 4, 10), (16, 4, 22), (16, 4, 64)]:
        command = [sys.executable, __file__, "--point", f"{images},{methods},{side}"]
        found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()[-1])
        spent = Spent(found["wall"], found["cpu"])
        print(
            f"  {images:3} images {methods:3} methods {side**2:5} segments {spent}"
            f"  {found['images']:6} passes  {1000 * found['cpu'] / found['images']:.2f} CPU ms each"
            f"  peak {found['peak']:.0f} MB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="overhead,contest,growth")
    parser.add_argument("--photos", default="", help="a folder of pictures; without it embedded ones are enlarged")
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--point", help=argparse.SUPPRESS)
    requested = parser.parse_args()
    if requested.point:
        one_point(*(int(number) for number in requested.point.split(",")))
        return
    parts = requested.parts.split(",")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, NumPy {np.__version__}")
    if {"overhead", "contest"} & set(parts):
        model = models.load("efficientnet-lite0")
        batch = pictures(model, requested.photos, requested.images)
        if "overhead" in parts:
            overhead(model, batch, requested.photos)
        if "contest" in parts:
            contest(model, batch)
    if "growth" in parts:
        growth()


if __name__ == "__main__":
    main()
