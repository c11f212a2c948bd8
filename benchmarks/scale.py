"""How long ImageNet's validation pictures take under the five protocols: counted passes × measured seconds of each.

    OMP_NUM_THREADS=1 python benchmarks/scale.py [--gpu-rate 2500] [--network torchvision:resnet50@random]

* Passes of a method are those it declares (`cost()`); passes of a metric are counted with a hook, on one picture of the
  protocol's own data, for one more map and for what all maps of a picture share.
* Seconds of a pass and of an imputed picture are measured here, in CPU seconds on one thread at 224², so that other
  work on the machine hardly moves them. A backward pass counts as two forward ones.
* No GPU was measured: its passes per second are an assumption, `--gpu-rate`, as are the cores of a node, `--cores`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from heatproof import engine, models, registry
from heatproof.audit.judges.price import passes_of
from heatproof.errors import HeatproofError, NotApplicable
from heatproof.occlusion.occlusion import impute
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.registry import name_of
from heatproof.run.shards import fitted
from heatproof.spec.parse import parse
from heatproof.traits import cost_of, method_traits, parts_of, protocol_traits
from heatproof.types import Batch

FIVE = ("pixel_flipping", "relative_importance", "mosaics", "threshold_free", "in_distribution")
MOST = 600  # passes of a method: dearer ones (Shapley values, score_cam on wide layers) are for fewer pictures


@dataclass(frozen=True)
class Demand:
    """What one picture costs under one protocol, for all methods: passes, and pictures painted in by imputers."""

    protocol: str
    passes: float
    imputed: dict[str, float]  # imputer -> pictures
    uncounted: tuple[str, ...]


def methods(count: int) -> list[Any]:
    """The cheapest methods that declare their passes, controls apart."""
    found = []
    for name in registry.names("method"):
        try:
            one = registry.entry("method", name).make()
            cost = cost_of(one)
        except (HeatproofError, TypeError):
            continue
        if cost is not None and not method_traits(one).control and cost.forward + 2 * cost.backward <= MOST:
            found.append((cost.forward + 2 * cost.backward, name, one))
    return [one for _, _, one in sorted(found, key=lambda item: item[:2])][:count]


def demand(name: str, explained: float, count: int) -> Demand:
    """Of one protocol, counted on the first picture of its own data; `explained`: passes for a map of each method."""
    protocol = registry.find("protocol", name, **dict(protocol_traits(registry.entry("protocol", name).make()).brief))
    first, second = parse("method", "saliency"), parse("method", "random")
    passes, imputed, uncounted = 0.0, dict[str, float](), []
    for at, study in enumerate(protocol.studies(models=None, datasets=None, methods=[first, second])):
        model = study.models[0]
        dataset = fitted(study.datasets[0], model, study)
        batch: Batch = dataset.batch(study.places(dataset)[:1]).to(model.device)
        if getattr(dataset, "target", study.target) != "given":
            batch = batch.aimed(engine.forward(model, batch.images).argmax(1))
        passes += explained if at == 0 else 0.0
        for metric in study.metrics:
            found = passes_of(metric, model, batch, first, second)
            if found.each != found.each:
                uncounted.append(name_of(metric)[1])  # type: ignore[index]
                continue
            own = found.each * count + found.shared + found.explanations * explained
            passes += own
            used = [known[1] for part in parts_of(metric) if (known := name_of(part)) and known[0] == "imputer"]
            for imputer in used:
                imputed[imputer] = imputed.get(imputer, 0.0) + found.each * count + found.shared
    return Demand(name, passes, imputed, tuple(dict.fromkeys(uncounted)))


def per_call(call: Callable[[], Any], rounds: int = 3) -> float:
    """CPU seconds of a call, the least of some rounds."""
    call()
    least = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        call()
        least = min(least, time.process_time() - began)
    return least


def imputing(name: str) -> float:
    """CPU seconds to paint in one picture of 224² of which half the segments are hidden."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(2, 3, 7, 7, generator=generator)
    images = torch.nn.functional.interpolate(images, size=(224, 224), mode="bilinear")
    segments = Slic()(images)
    hidden = torch.rand(2, int(segments.max()) + 1, generator=generator) < 0.5
    keep = ~torch.gather(hidden, 1, segments.flatten(1)).view_as(segments)
    imputer = registry.find("imputer", name)
    try:
        return per_call(lambda: impute(imputer, images, keep, range(len(images)))) / len(images)
    except NotApplicable:
        return 0.0  # twins are there already, and dropped tokens are no picture


def duration(seconds: float) -> str:
    return f"{seconds / 86400:.1f} days" if seconds > 2 * 86400 else f"{seconds / 3600:.1f} h"


def lines(options: argparse.Namespace) -> Iterator[str]:
    chosen = methods(options.methods)
    explained = sum(cost_of(one).forward + 2 * cost_of(one).backward for one in chosen)
    network = models.load(options.network)
    images = torch.rand(8, 3, 224, 224)
    with engine.use(engine.Engine(measure=False)):
        each = per_call(lambda: engine.forward(network, images)) / len(images)
    demands = [demand(name, explained, len(chosen)) for name in FIVE]
    seconds = {name: imputing(name) for name in sorted({name for one in demands for name in one.imputed})}
    yield (
        f"{options.pictures:,} pictures, {len(chosen)} methods, {options.network}: a pass takes {each * 1000:.0f} ms "
        f"of a core here; assumed: {options.cores} cores in a node and {options.gpu_rate:,} passes per second of a GPU."
    )
    yield ""
    yield (
        "| protocol | passes per picture | passes in all | imputed per picture | node of CPUs: passes | imputers | "
        f"{options.gpus} GPUs: passes | imputers on their cores |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    total = [0.0] * 5
    for one in demands:
        painting = sum(seconds[name] * many for name, many in one.imputed.items()) * options.pictures / options.cores
        all_passes = one.passes * options.pictures
        times = (all_passes * each / options.cores, painting, all_passes / (options.gpu_rate * options.gpus), painting)
        total = [a + b for a, b in zip(total, (all_passes, *times), strict=True)]
        yield (
            f"| {one.protocol} | {one.passes:,.0f} | {all_passes:.2g} | {sum(one.imputed.values()):,.0f} | "
            f"{' | '.join(duration(t) for t in times)} |"
        )
    yield f"| all | | {total[0]:.2g} | | {' | '.join(duration(t) for t in total[1:])} |"
    yield ""
    costs = ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in sorted(seconds.items(), key=lambda i: -i[1]))
    yield f"CPU time to paint in one picture of 224²: {costs}."
    missing = [f"{name} ({one.protocol})" for one in demands for name in one.uncounted]
    if missing:
        yield f"Not counted, since they do not apply to one picture of the protocol's own data: {', '.join(missing)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=int, default=50_000)
    parser.add_argument("--methods", type=int, default=40)
    parser.add_argument("--network", default="torchvision:resnet50@random")
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--gpu-rate", type=int, default=2500)
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    for line in lines(parser.parse_args()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
