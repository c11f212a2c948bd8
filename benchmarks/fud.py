"""What FUD costs: network calls and seconds per picture for eleven methods, paper profile against fast, in
one run.

    python benchmarks/fud.py [--pictures 8] [--levels 0.7,0.4,0.1] [--draws 1]

Both profiles judge the same maps of the same pictures with the same noise seeds. The agreement of the two
rankings of methods is Kendall's tau of the mean scores, with a bootstrap interval over pictures.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
from scipy.stats import kendalltau
from torch import Tensor

from heatproof import engine, models
from heatproof.attribute import attribute
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.metrics.fud import Fud
from heatproof.occlusion.diffusion import priors, reconstruction_cache
from heatproof.protocols.in_distribution import contestants
from heatproof.spec import recipe
from heatproof.types import Attribution


@dataclass(eq=False)
class Counted:
    """A prior that counts the pictures it is given."""

    inner: Any = field(default_factory=lambda: priors.find("embedded"))
    calls: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __call__(self, x: Tensor, t: int, /) -> Tensor:
        self.calls += len(x)
        return self.inner(x, t)


@dataclass(frozen=True, eq=False)
class Judged:
    """What one profile scored, and what it cost."""

    scores: np.ndarray[Any, Any]  # (methods, pictures)
    calls: float  # of the prior, per picture
    seconds: float  # per picture


def judged(profile: Literal["fast", "paper"], explained: list[Attribution], metric: Fud) -> Judged:
    """Every method under one profile, everything drawn anew."""
    prior = Counted()
    metric = replace(metric, prior=prior, profile=profile)
    began = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as empty,
        patch.object(reconstruction_cache, "path", lambda: Path(empty) / "kept.sqlite"),
    ):
        scores = np.array([metric(attribution).values.numpy() for attribution in explained])
    count = len(explained[0].batch)
    found = Judged(scores, prior.calls / count, (time.perf_counter() - began) / count)
    print(f"{profile:6} {found.calls:8.0f} network calls, {found.seconds:7.1f} s per picture", flush=True)
    return found


def agreement(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Kendall's tau of the methods' mean scores, and its 95 % interval over pictures drawn with
    replacement."""
    dice = np.random.default_rng(0)
    drawn = dice.integers(0, one.shape[1], (2000, one.shape[1]))
    taus = [kendalltau(one[:, rows].mean(1), other[:, rows].mean(1)).statistic for rows in drawn]
    low, high = np.quantile(taus, [0.025, 0.975])
    return float(kendalltau(one.mean(1), other.mean(1)).statistic), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=8)
    parser.add_argument("--levels", default="0.9,0.8,0.7,0.6,0.5,0.4,0.3,0.2,0.1")
    parser.add_argument("--draws", type=int, default=1)
    given = parser.parse_args()
    metric = Fud(levels=tuple(float(level) for level in given.levels.split(",")), draws=given.draws, controls=())
    model = models.load("embedded:object")
    batch = TwoFactor(count=given.pictures).batch(range(given.pictures))
    batch = batch.aimed(engine.forward(model, batch.images).argmax(1))
    methods = contestants("fast")
    explained = [attribute(model, batch, method) for method in methods]
    print(f"{len(methods)} methods, {given.pictures} pictures, kept {metric.levels}, draws {given.draws}")
    fast, paper = judged("fast", explained, metric), judged("paper", explained, metric)
    tau, low, high = agreement(fast.scores, paper.scores)
    print(f"{paper.calls / fast.calls:.1f} times fewer network calls, {paper.seconds / fast.seconds:.1f} times faster")
    print(f"Kendall's tau of the two rankings {tau:.2f} (95 % interval {low:.2f} to {high:.2f})")
    for method, one, other in zip(methods, fast.scores.mean(1), paper.scores.mean(1), strict=True):
        print(f"  {recipe.label(method):40} fast {one:.3f}  paper {other:.3f}")


if __name__ == "__main__":
    main()
