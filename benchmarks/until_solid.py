"""What `--until solid` saves: the pairs it decides and the passes it takes, beside a fixed run of 240 pictures.

    python benchmarks/until_solid.py --photos FOLDER --runs runs/until_solid
    python benchmarks/until_solid.py --runs runs/until_solid_embedded    # the embedded object model and pictures

Three runs of the same seven methods on the same pictures in the same order, SRG each: until every pair is decided, a
race for the first place, and a fixed number of pictures with all points of the curves. Stopped, it goes on where it
was. Since the order of the pictures is luck, the looks are also taken in other random orders of the fixed run's scores.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import stats
from watching import counting

from heatproof.results import Results
from heatproof.run.loop import run
from heatproof.run.until import SHARD, Solid, Steps, prepared
from heatproof.spec import from_options
from heatproof.spec.study import Study
from heatproof.stats.decisions import decided, look
from heatproof.stats.looks import look_steps
from heatproof.stats.page import Card, Page, PairTests, compare_means

METHODS = "saliency,input_x_gradient,smoothgrad(draws=16),integrated_gradients(steps=16),guided_backprop,lrp,grad_cam"
ORDERS = 40


def rules(pictures: int, margin: float) -> dict[str, Solid | None]:
    """The runs by name; None judges all pictures."""
    solid = Solid(margin=margin, max_images=pictures)
    return {"fixed": None, "until solid": solid, "race": replace(solid, race=True)}


def steps_of(name: str) -> Steps:
    return "full" if name == "fixed" else "fast"


def studies(given: argparse.Namespace, steps: Steps, pictures: int) -> list[Study]:
    """The study of one of the runs: all of them meet the same pictures in the same order."""
    found = from_options.studies(
        models=[given.model],
        images=[given.photos or "two_factor"],
        methods=METHODS,
        metrics="srg",
        protocols=None,
        changes={"repeats": 0, "limit": pictures},
    )
    return prepared(found, Solid(max_images=pictures, steps=steps))


@dataclass(frozen=True)
class Made:
    """A run that is there, and the passes, forward and backward, of one method on one picture."""

    results: Results
    per_map: float

    @property
    def scores(self) -> pd.DataFrame:
        """Pictures × methods, in the order of the run."""
        return self.results.table(self.results.metrics[0]).droplevel(["dataset", "model"])

    @property
    def tests(self) -> PairTests:
        return self.results.pairs(self.results.metrics[0])

    @property
    def passes(self) -> float:
        return self.per_map * len(self.results.scores)


def made(given: argparse.Namespace) -> dict[str, Made]:
    """The runs by name; each goes on where it was stopped, and one that is complete is only read."""
    known = rules(given.pictures, given.margin)
    prices = {steps: price(given, steps) for steps in ("fast", "full")}
    found = {}
    for name in sorted(known, key=lambda name: known[name] is None):  # the cheap ones first
        chosen = studies(given, steps_of(name), given.pictures)
        results = run(chosen, given.runs / name.replace(" ", "_"), until=known[name], workers=given.workers)
        found[name] = Made(results, prices[steps_of(name)])
    return found


def price(given: argparse.Namespace, steps: Steps) -> float:
    """Passes of one method on one picture, counted on the first shard."""
    kept = given.runs / f"passes_{steps}.json"
    if not kept.exists():
        given.runs.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as folder, counting() as requested:
            results = run(studies(given, steps, SHARD), Path(folder))
        kept.write_text(json.dumps((sum(requested.portions) + requested.slopes) / len(results.scores)))
    return float(json.loads(kept.read_text()))


def agreement(fixed: PairTests, tests: PairTests) -> str:
    """What was decided of the pairs that the fixed run separates, and of the others."""
    solid, found = fixed.beats(), tests.beats()
    near = {frozenset(pair) for pair in _pairs(tests.frame[tests.frame["outcome"] == "equivalent"])}
    sizes = dict(zip(map(frozenset, _pairs(fixed.frame)), fixed.frame["mean_difference"].abs(), strict=True))
    missed = {frozenset(pair) for pair in solid} - {frozenset(pair) for pair in found}
    words = [f"{len(solid & found)} of the {len(solid)} pairs that the fixed run separates are separated alike"]
    if alike := missed & near:
        words.append(f"{len(alike)} of them equivalent (differences up to {max(sizes[pair] for pair in alike):.3f})")
    if open_ := missed - near:
        words.append(f"{len(open_)} open (up to {max(sizes[pair] for pair in open_):.3f})")
    words.append(f"{len({(worse, better) for better, worse in found} & solid)} the other way round")
    return ", ".join(words)


def last_decision(fixed: PairTests, tests: PairTests) -> int:
    """After how many pictures the last pair was separated that the fixed run separates alike."""
    both = {frozenset(pair) for pair in fixed.beats() & tests.beats()}
    return max(int(n) for pair, n in zip(_pairs(tests.frame), tests.frame["n"], strict=True) if frozenset(pair) in both)


def _pairs(frame: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(frame["method_a"], frame["method_b"], strict=True))


@dataclass(frozen=True)
class Ended:
    """A run as it would have been in some order of the pictures."""

    tests: PairTests
    pictures: int
    maps: int  # pictures × methods


def replayed(scores: pd.DataFrame, rule: Solid) -> Ended:
    """The looks at these scores in their order, until the rule is met."""
    kept = scores.copy()  # without those of methods that have left the race
    pages: list[Page[int]] = []
    for number, step in enumerate(look_steps(-(-len(scores) // SHARD)), 1):
        seen = kept.iloc[: step * SHARD]
        pages.append(look({0: Card(seen)}, None, number, alpha=rule.alpha))
        tests = decided(pages, alpha=rule.alpha, margin=rule.margin).tests[0]
        left = list(scores.columns)
        if rule.race:
            beaten = {worse for _, worse in tests.beats()}
            left = [method for method in left if method not in beaten]
            kept.loc[kept.index[len(seen) :], sorted(beaten)] = np.nan
        if not (tests.among(left)["outcome"] == "open").any():
            break
    return Ended(tests, len(seen), int(seen.notna().to_numpy().sum()))


def report(found: dict[str, Made], given: argparse.Namespace) -> Iterator[str]:
    """The runs beside the fixed one, then the same in other orders."""
    fixed = found["fixed"]
    width = len(fixed.scores.columns)
    best = str(fixed.scores.mean().idxmax())
    yield f"{given.model}, {width} methods, SRG, margin ±{given.margin:g}"
    for name, rule in rules(given.pictures, given.margin).items():
        one = found[name]
        yield (
            f"  {name:12} {len(one.scores):4} pictures, {one.per_map:5.1f} passes a map, {one.passes:9,.0f} in all, "
            f"{fixed.passes / one.passes:5.1f}× fewer"
        )
        if rule is not None:
            yield f"    {agreement(fixed.tests, one.tests)}"
        if rule is not None and not rule.race:
            after = last_decision(fixed.tests, one.tests)
            price = after * width * one.per_map
            yield f"    the last of these after {after} pictures: {fixed.passes / price:.1f}× fewer passes"
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(fixed.scores)) for _ in range(given.orders)]
    for name in ("until solid", "race"):
        rule = rules(given.pictures, given.margin)[name]
        assert rule is not None
        ends = [replayed(fixed.scores.iloc[order], rule) for order in orders]
        saved = [fixed.passes / (one.maps * found[name].per_map) for one in ends]
        yield f"  {name} in {given.orders} orders of these scores (of all points, at the price of nine):"
        yield f"    passes fewer by {_spread(saved, 1)}; pictures {_spread([one.pictures for one in ends], 0)}"
        if rule.race:
            level = [best not in _beaten(one) for one in ends]
            yield f"    {best}, the best of the fixed run, is not beaten in {sum(level)} of {given.orders}"
        else:
            solid = fixed.tests.beats()
            alone = [
                fixed.passes / (last_decision(fixed.tests, one.tests) * width * found[name].per_map) for one in ends
            ]
            yield f"    until the last of the fixed run's pairs that it separates: {_spread(alone, 1)}"
            shares = [100 * len(one.tests.beats() & solid) / len(solid) for one in ends]
            turned = sum(bool({(b, a) for a, b in one.tests.beats()} & solid) for one in ends)
            yield f"    its pairs separated alike, %: {_spread(shares, 0)}; any the other way round in {turned} orders"
    yield from fewer_points(fixed, found["until solid"])


def fewer_points(fixed: Made, fast: Made) -> Iterator[str]:
    """What nine points keep of the ranking, on the pictures that both runs have."""
    full, few = fixed.scores.align(fast.scores, join="inner")
    tau = stats.kendalltau(full.mean(), few.mean()).statistic
    pairs = [compare_means(table).frame.set_index(["method_a", "method_b"]) for table in (full, few)]
    solid = pairs[0]["significant"]
    kept = (pairs[1]["effect"] / pairs[0]["effect"])[solid]
    yield (
        f"  nine points of a curve, {len(full)} pictures: {fixed.per_map / fast.per_map:.1f}× fewer passes; "
        f"Kendall's tau of the means {tau:.2f}; effect sizes of {int(solid.sum())} solid pairs {kept.median():.2f} "
        f"of all points' (least {kept.min():.2f}); {int((solid & pairs[1]['significant']).sum())} of them solid again"
    )


def _beaten(one: Ended) -> set[str]:
    return {worse for _, worse in one.tests.beats()}


def _spread(values: list[float], digits: int) -> str:
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}: eight in ten)"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--photos", default="", help="a folder; otherwise embedded pictures")
    words.add_argument("--model", default="")
    words.add_argument("--runs", type=Path, required=True, help="where the runs are kept")
    words.add_argument("--workers", type=int, default=1)
    words.add_argument("--pictures", type=int, default=240)
    words.add_argument("--margin", type=float, default=Solid.margin)
    words.add_argument("--orders", type=int, default=ORDERS)
    given = words.parse_args()
    given.model = given.model or ("efficientnet-lite0" if given.photos else "embedded:object")
    for line in report(made(given), given):
        print(line, flush=True)


if __name__ == "__main__":
    main()
