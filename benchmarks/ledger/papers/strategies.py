"""Whether the ranking of methods depends on the occlusion strategy, under MIF, LIF and SRG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.results.protocol_notes import strategies_of
from heatproof.stats.strategies import random_among
from ledger.number import Finding, above, below, counted, every, near
from ledger.rows import recipe, row
from ledger.sample import Floats, Sample

IMPUTERS = "imputers=[mean,train_set,histogram,telea]"
PIXEL_WISE = (
    "lrp,saliency,input_x_gradient,integrated_gradients(baseline=mean),"
    "smoothgrad(method=saliency,draws=5,noise=1,unit=normalised),"
    "smoothgrad(method=integrated_gradients(baseline=mean),draws=5,noise=1,unit=normalised)"
)
EMBEDDED = recipe(
    "strategies",
    "the embedded pictures, two embedded object models (residual and plain), four imputers × 25, 100, 500 and 5,000 "
    "superpixels (the last here single pixels), the paper's six pixel-wise methods and a random one, its steps.",
    full=f"--protocols 'pixel_flipping(preset=paper,{IMPUTERS})' --methods '{PIXEL_WISE}' --limit 64",
)
PHOTOS = recipe(
    "strategies_photos",
    "photos, EfficientNet-Lite0 and -Lite1, the same 32 strategies and methods, one imputation per point.",
    full="--model efficientnet-lite0 --model efficientnet-lite1 --images {photos} "
    f"--protocols 'pixel_flipping(preset=paper,draws=1,{IMPUTERS})' --methods '{PIXEL_WISE}' --limit 100",
)
PUBLISHED = (
    "lrp",
    "smoothgrad(method=saliency",
    "saliency",
    "integrated_gradients",
    "smoothgrad(method=integrated",
    "input_x_gradient",
    "random",
)
MEASURES = ("MIF", "LIF", "SRG")


@dataclass(frozen=True, eq=False)
class Setups:
    """Means by setup, method and measure, from a row of means of the columns of `table`."""

    table: pd.DataFrame  # pictures × (model, imputer, superpixels, measure, method)
    setups: list[tuple[str, str, int]]
    methods: list[str]
    random: str

    def cube(self, means: Floats) -> NDArray[np.float64]:
        """(setups, methods, MIF and LIF)."""
        return means.reshape(len(self.setups), 2, len(self.methods)).transpose(0, 2, 1)

    def scores(self, means: Floats) -> dict[str, Floats]:
        """(setups, methods) by measure, higher is better."""
        cube = self.cube(means)
        mif, lif = cube[..., 0], cube[..., 1]
        return {"MIF": -mif, "LIF": lif, "SRG": lif - mif}

    def r_oms(self, means: Floats) -> Floats:
        """Mean answer under the random order of the MIF direction, per setup."""
        return np.asarray(self.cube(means)[:, self.methods.index(self.random), 0])

    def separation(self, scores: Floats) -> Floats:
        """Mean distance of two methods without the random one, per setup."""
        own = np.delete(scores, self.methods.index(self.random), axis=1)
        pairs = list(combinations(range(own.shape[1]), 2))
        return np.mean([np.abs(own[:, a] - own[:, b]) for a, b in pairs], axis=0)


def orders(scores: Floats) -> list[tuple[int, ...]]:
    """The ranking of every setup, best first."""
    return [tuple(int(i) for i in row) for row in np.argsort(-scores, axis=1, kind="stable")]


def agreement(scores: Floats) -> float:
    """Mean Kendall's tau of two setups' rankings."""
    pairs = list(combinations(range(scores.shape[1]), 2))
    signs = np.sign(np.array([scores[:, a] - scores[:, b] for a, b in pairs])).T
    count = len(signs)
    return float(((signs.sum(0) ** 2).sum() - (signs**2).sum()) / (count * (count - 1) * len(pairs)))


def dependent(scores: Floats) -> int:
    """Pairs of methods whose order differs between setups."""
    pairs = combinations(range(scores.shape[1]), 2)
    signs = [np.sign(scores[:, a] - scores[:, b]) for a, b in pairs]
    return sum(1 for one in signs if one.min() < 0 < one.max())


@lru_cache(maxsize=4)
def setups_of(sample: Sample) -> Setups:
    """Every setup with the pictures that all methods have scores on under all of them."""
    results = sample.results
    methods = [name for name in sample.methods if not results.is_control(name)]
    random = random_among(sample.methods)
    columns, setups = [], []
    for model in results.scores["model"].unique():
        for one in strategies_of(results.info):
            setups.append((str(model), one.imputer, one.n_superpixels))
            for label in (one.mif, one.lif):
                assert label is not None
                columns.append(sample.panel(label, model=str(model))[[*methods, random]])
    keys = range(len(columns))
    return Setups(pd.concat(columns, axis=1, keys=keys).dropna(), setups, [*methods, random], random)


Statistic = Callable[[Floats], float]


for at, where in ((PHOTOS, "photos"), (EMBEDDED, "embedded")):

    @row(
        f"pixel_flipping.rankings.{where}",
        at,
        "SRG gives fewer rankings than MIF or LIF (paper: 17 under MIF, 23 under LIF and 7 under SRG of 40)",
        "distinct rankings of the methods and random over all strategies; the difference to SRG, pictures resampled",
    )
    def rankings(sample: Sample) -> Finding:
        found = setups_of(sample)

        def count(measure: str) -> Statistic:
            return lambda means: float(len(set(orders(found.scores(means)[measure]))))

        counts = {name: count(name) for name in MEASURES}
        gaps: dict[str, Statistic] = {
            f"{name} − SRG": (lambda means, name=name: counts[name](means) - counts["SRG"](means))  # type: ignore[misc]
            for name in ("MIF", "LIF")
        }
        numbers = sample.several(found.table, {**counts, **gaps}, "count")
        return Finding(tuple(numbers), every(above(gap) for gap in numbers[3:]), tuple(numbers[3:]))

    @row(
        f"pixel_flipping.agreement.{where}",
        at,
        "Two strategies agree more under SRG than under MIF or LIF",
        "mean Kendall's tau of two strategies' rankings",
    )
    def taus(sample: Sample) -> Finding:
        found = setups_of(sample)

        def tau(measure: str) -> Statistic:
            return lambda means: agreement(found.scores(means)[measure])

        taus = {name: tau(name) for name in MEASURES}
        gaps: dict[str, Statistic] = {
            f"SRG − {name}": (lambda means, name=name: taus["SRG"](means) - taus[name](means))  # type: ignore[misc]
            for name in ("MIF", "LIF")
        }
        numbers = sample.several(found.table, {**taus, **gaps})
        return Finding(tuple(numbers), every(above(gap) for gap in numbers[3:]), tuple(numbers[3:]))

    @row(
        f"pixel_flipping.most_frequent.{where}",
        at,
        "The most frequent ranking is LRP > SmoothGrad-saliency > saliency > IG > IG-SmoothGrad > input × gradient > "
        "random (21 of 40 under SRG)",
        "strategies that have exactly this ranking under SRG, and those that have the most frequent one",
    )
    def frequent(sample: Sample) -> Finding:
        found = setups_of(sample)
        wanted = tuple(found.methods.index(sample.find(one)) for one in PUBLISHED)

        def exactly(means: Floats) -> float:
            return float(orders(found.scores(means)["SRG"]).count(wanted))

        def most(means: Floats) -> float:
            return float(Counter(orders(found.scores(means)["SRG"])).most_common(1)[0][1])

        numbers = sample.several(found.table, {"published ranking": exactly, "most frequent ranking": most}, "count")
        return Finding(tuple(numbers), counted(numbers[0].value == numbers[1].value))

    @row(
        f"pixel_flipping.pairs.{where}",
        at,
        "Fewer pairs of methods depend on the strategy",
        "pairs whose order differs between strategies; the difference to SRG",
    )
    def pairs(sample: Sample) -> Finding:
        found = setups_of(sample)

        def pairs_of(measure: str) -> Statistic:
            return lambda means: float(dependent(found.scores(means)[measure]))

        counts = {name: pairs_of(name) for name in MEASURES}
        gaps: dict[str, Statistic] = {
            f"{name} − SRG": (lambda means, name=name: counts[name](means) - counts["SRG"](means))  # type: ignore[misc]
            for name in ("MIF", "LIF")
        }
        numbers = sample.several(found.table, {**counts, **gaps}, "count")
        return Finding(tuple(numbers), every(above(gap) for gap in numbers[3:]), tuple(numbers[3:]))

    @row(
        f"pixel_flipping.variance.{where}",
        at,
        "Gains vary less when symmetric",
        "variance over strategies, mean over methods, of MRG, LRG and SRG, times 1,000",
    )
    def variance(sample: Sample) -> Finding:
        found = setups_of(sample)

        def of(measure: str) -> Statistic:
            def value(means: Floats) -> float:
                scores, base = found.scores(means), found.r_oms(means)[:, None]
                gains = {"SRG": scores["SRG"], "MRG": base + scores["MIF"], "LRG": scores["LIF"] - base}
                own = np.delete(gains[measure], found.methods.index(found.random), axis=1)
                return 1000 * float(own.var(axis=0, ddof=1).mean())

            return value

        each = {name: of(name) for name in ("MRG", "LRG", "SRG")}
        gaps: dict[str, Statistic] = {
            f"{name} − SRG": (lambda means, name=name: each[name](means) - each["SRG"](means))  # type: ignore[misc]
            for name in ("MRG", "LRG")
        }
        numbers = sample.several(found.table, {**each, **gaps})
        return Finding(tuple(numbers), every(above(gap) for gap in numbers[3:]), tuple(numbers[3:]))

    @row(
        f"pixel_flipping.separation.{where}",
        at,
        "How far MIF and LIF tell methods apart depends on R-OMS, SRG does not",
        "Pearson's r of separation with R-OMS over strategies: above 0.5, below −0.5, and between",
    )
    def separation(sample: Sample) -> Finding:
        found = setups_of(sample)

        def r(measure: str) -> Statistic:
            def value(means: Floats) -> float:
                apart = found.separation(found.scores(means)[measure])
                return float(np.corrcoef(apart, found.r_oms(means))[0, 1])

            return value

        mif, lif, srg = numbers = sample.several(found.table, {name: r(name) for name in MEASURES})
        return Finding(tuple(numbers), every([above(mif, 0.5), below(lif, -0.5), near(srg, 0, 0.5)]), tuple(numbers))

    @row(
        f"pixel_flipping.r_oms.{where}",
        at,
        "The imputer moves R-OMS most (0.188; number of superpixels 0.074, model 0.055)",
        "largest minus smallest mean R-OMS by choice",
    )
    def choice(sample: Sample) -> Finding:
        found = setups_of(sample)

        def span(place: int) -> Statistic:
            def value(means: Floats) -> float:
                levels = pd.Series(found.r_oms(means)).groupby([setup[place] for setup in found.setups]).mean()
                return float(levels.max() - levels.min())

            return value

        each = {"imputer": span(1), "number of superpixels": span(2), "model": span(0)}
        gaps: dict[str, Statistic] = {
            f"imputer − {name}": (lambda means, name=name: each["imputer"](means) - each[name](means))  # type: ignore[misc]
            for name in ("number of superpixels", "model")
        }
        numbers = sample.several(found.table, {**each, **gaps})
        return Finding(tuple(numbers), every(above(gap) for gap in numbers[3:]), tuple(numbers[3:]))
