"""Threshold-free localisation: what a single threshold would have decided, and which method is first without one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from heatproof.stats.ranks import kendall_tau
from ledger.number import Finding, Number, above, counted, every, near, published
from ledger.papers import pixel_flipping as flipping
from ledger.rows import paper, recipe, row
from ledger.sample import Floats, Sample, intervals

paper(
    "threshold_free",
    "Threshold-free localisation (2509.03176)",
    """The paper judged seven methods on 500 skin lesions with a ResNet-18: a claim that fails here may hold on lesions,
and the other way round. Its −10 % for LIME at every threshold is the area of a curve of width 0.9 set against heights.
Six of the seven methods hand over maps that are never negative, for which several normalising rules are the same.""",
)

EMBEDDED = recipe(
    "threshold_free",
    "the embedded object model, embedded pictures whose object covers 4 % to 50 % of them, 19 thresholds, mean height "
    "of the IoU curve, the paper's seven methods with fewer steps.",
    full="--protocols threshold_free --limit 192",
    quick="--protocols threshold_free --limit 24 --methods "
    "'grad_cam,integrated_gradients(steps=25,baseline=mean,pooling=abs_sum),guided_ig(steps=8),xrai(steps=4),"
    "lime(samples=60,top=5,imputer=constant,readout=probability),blur_ig(steps=8,pooling=abs_sum),ig_smoothgrad(steps=4,draws=4,mode=squared,baseline=mean)'",
)
PHOTOS = recipe(
    "threshold_free_photos",
    "the same on photos and their machine-made masks, EfficientNet-Lite0.",
    full="--model efficientnet-lite0 --images {photos} --masks {masks} --protocols threshold_free --limit 300",
)
MAIN = "auc_iou"
XRAI, LIME, CAM, IG, BLUR, SMOOTH, GUIDED = (
    "xrai",
    "lime",
    "grad_cam",
    "integrated_gradients",
    "blur_ig",
    "ig_smoothgrad",
    "guided_ig",
)
SEVEN = {
    "XRAI": XRAI,
    "LIME": LIME,
    "Grad-CAM": CAM,
    "IG": IG,
    "Blur IG": BLUR,
    "SmoothGrad-IG": SMOOTH,
    "Guided IG": GUIDED,
}
RULES = ("abs_p99", "abs_min_max", "positive", "positive_p99", "min_max", "rank")
PERCENTILES = (33, 67)


def by_threshold(sample: Sample, metric: str = MAIN) -> dict[float, pd.DataFrame]:
    """Threshold (or any x of curves on one grid) -> pictures × methods."""
    curves = sample.results.curves
    rows = curves[(curves["metric"] == metric) & curves["method"].isin(sample.contestants)]
    grid = [round(float(x), 6) for x in rows["x"].iloc[0]]
    heights = np.stack([np.asarray(y, dtype=float) for y in rows["y"]])
    index = pd.MultiIndex.from_frame(rows[["image", "method"]])
    return {x: pd.Series(heights[:, at], index).unstack("method") for at, x in enumerate(grid)}


def reversed_pairs(sample: Sample, tables: list[pd.DataFrame]) -> tuple[int, int, int]:
    """How many pairs are clearly ahead in one table and clearly behind in another, change order at all, and there are.

    All differences of all tables share the 5 %.
    """
    pairs = list(combinations(tables[0].columns, 2))
    clear = changed = 0
    level = 1 - 0.05 / (len(pairs) * len(tables))
    for a, b in pairs:
        gaps = pd.concat([table[a] - table[b] for table in tables], axis=1, keys=range(len(tables))).dropna()
        gaps.columns = [str(name) for name in gaps.columns]
        spans = intervals(gaps, sample.groups(gaps.index), level)
        clear += bool((spans["low"] > 0).any() and (spans["high"] < 0).any())
        changed += bool((spans["mean"] > 0).any() and (spans["mean"] < 0).any())
    return clear, changed, len(pairs)


def count_of(what: str, value: float, n: int) -> Number:
    return Number(what, value, np.nan, np.nan, n, unit="count")


def strata(sample: Sample) -> pd.Series:
    """small, medium or large: which third of region sizes a picture is in."""
    sizes = sample.panel("region_share").mean(axis=1)
    low, high = np.percentile(sizes, PERCENTILES)
    return pd.Series(np.where(sizes <= low, "small", np.where(sizes <= high, "medium", "large")), sizes.index)


def gains(sample: Sample) -> tuple[pd.DataFrame, list[Callable[[Floats], float]]]:
    """A table of sums and counts by stratum, and for each of the seven methods its gain in per cent of their means."""
    table, of = sample.panel(MAIN), strata(sample)
    columns = [of.eq("small").astype(float), of.eq("large").astype(float)]
    for label in SEVEN.values():
        scores = table[sample.find(label)]
        columns += [scores * columns[0], scores * columns[1]]

    def gain(at: int) -> Callable[[Floats], float]:
        def value(means: Floats) -> float:
            few, many, small, large = means[0], means[1], means[2 + 2 * at], means[3 + 2 * at]
            with np.errstate(invalid="ignore", divide="ignore"):  # a resample may hold no picture of a stratum
                return float(100 * (large / many / (small / few) - 1))

        return value

    joined = pd.concat(columns, axis=1, keys=range(len(columns)))
    return joined, [gain(at) for at in range(len(SEVEN))]


for at, where in ((EMBEDDED, "embedded"), (PHOTOS, "photos")):

    @row(
        f"threshold_free.reversal.{where}",
        at,
        "The threshold alone can reverse a ranking.",
        "winners over thresholds; pairs of methods clearly in one order at one threshold and in the other at another",
    )
    def reversal(sample: Sample) -> Finding:
        tables = list(by_threshold(sample).values())
        winners = {str(table.mean().idxmax()) for table in tables}
        clear, changed, pairs = reversed_pairs(sample, tables)
        n = len(tables[0])
        numbers = (
            count_of("different winners", len(winners), n),
            count_of(f"pairs of {pairs} that change order", changed, n),
            count_of("clearly so", clear, n),
        )
        return Finding(numbers, counted(clear > 0) if clear or not changed else "cannot tell")

    @row(
        f"threshold_free.swing.{where}",
        at,
        "Threshold choice alters results by over 200 percentage points (235.6 for integrated gradients).",
        "swing of the relative difference between thresholds 0.3 and 0.7, height against height",
    )
    def swing(sample: Sample) -> Finding:
        tables, free = by_threshold(sample), sample.panel(MAIN)

        def value(means: Floats) -> float:
            height, low, high = means
            return float(100 * height * (1 / high - 1 / low))

        numbers = []
        for name, label in SEVEN.items():
            method = sample.find(label)
            columns = pd.concat([free[method], tables[0.3][method], tables[0.7][method]], axis=1, keys=range(3))
            numbers.append(sample.of_means(name, columns, value))
        ig = numbers[list(SEVEN).index("IG")]
        return Finding(tuple(numbers), above(ig, 200), (ig,))

    @row(
        f"threshold_free.lime.{where}",
        at,
        "LIME does not depend on the threshold.",
        "IoU of its 0/1 map at 0.3 minus at 0.7, within ±0.005",
    )
    def lime(sample: Sample) -> Finding:
        tables, method = by_threshold(sample), sample.find(LIME)
        number = sample.of_column("LIME at 0.3 − at 0.7", tables[0.3][method] - tables[0.7][method])
        return Finding((number,), near(number, 0, 0.005), (number,))

    @row(f"threshold_free.first.{where}", at, "XRAI is first.", "mean AUC-IoU, and XRAI's differences to the others")
    def first(sample: Sample) -> Finding:
        table = sample.panel(MAIN)
        others = {name: label for name, label in SEVEN.items() if label != XRAI}
        means = [sample.mean(name, table, label) for name, label in SEVEN.items()]
        gaps = [
            sample.difference(f"XRAI − {name}", table, XRAI, label, parts=len(others)) for name, label in others.items()
        ]
        return Finding((*means, *gaps), every(above(gap) for gap in gaps), tuple(gaps))

    for name, size in (("LIME", 31), ("IG", 204)):

        @row(
            f"threshold_free.better_than_{name.lower()}.{where}",
            at,
            f"XRAI is {size} % better than {'integrated gradients' if name == 'IG' else name}.",
            "ratio of means",
        )
        def better(sample: Sample, name: str = name, size: int = size) -> Finding:
            table = sample.panel(MAIN)
            number = sample.ratio(f"XRAI over {name}", table[sample.find(XRAI)], table[sample.find(SEVEN[name])])
            return Finding((number,), published(number, size), (number,))

    @row(
        f"threshold_free.size.{where}",
        at,
        "Grad-CAM gains most from small to large objects (269 %).",
        f"gain of means from regions up to the {PERCENTILES[0]}rd percentile of size to those above the "
        f"{PERCENTILES[1]}th; Grad-CAM's minus the largest of the others",
    )
    def size_gain(sample: Sample) -> Finding:
        table, each = gains(sample)
        cam = list(SEVEN).index("Grad-CAM")

        def ahead(means: Floats) -> float:
            return each[cam](means) - max(one(means) for at, one in enumerate(each) if at != cam)

        found = dict(zip(SEVEN, each, strict=True)) | {"Grad-CAM − the next": ahead}
        numbers = sample.several(table, found, "%")
        return Finding(tuple(numbers), above(numbers[-1]), (numbers[-1],))

    @row(
        f"threshold_free.size_differs.{where}",
        at,
        "Methods differ in how they react to size (Grad-CAM 269 %, Blur IG 0 %).",
        "the same gains; Grad-CAM's minus Blur IG's",
    )
    def size_differs(sample: Sample) -> Finding:
        table, each = gains(sample)
        cam, blur = (list(SEVEN).index(name) for name in ("Grad-CAM", "Blur IG"))
        number = sample.of_means(
            "Grad-CAM − Blur IG", table, lambda means: each[cam](means) - each[blur](means), unit="%"
        )
        return Finding((number,), above(number), (number,))

    @row(
        f"threshold_free.smoothing.{where}",
        at,
        "Smoothing helps: SmoothGrad-IG is above plain IG.",
        "difference of mean AUC-IoU",
    )
    def smoothing(sample: Sample) -> Finding:
        number = sample.difference("SmoothGrad-IG − IG", sample.panel(MAIN), SMOOTH, IG)
        return Finding((number,), above(number), (number,))

    @row(
        f"threshold_free.normalising.{where}",
        at,
        "Threshold-free evaluation removes the arbitrary choice.",
        "Kendall's tau of the ranking under each other normalising rule with the main one: above 0.8",
    )
    def normalising(sample: Sample) -> Finding:
        names = sample.contestants
        panels = [sample.panel(MAIN)[names], *(sample.panel(f"{MAIN}(rule={rule})")[names] for rule in RULES)]
        table = pd.concat(panels, axis=1, keys=range(len(panels)))

        def tau(at: int) -> Callable[[Floats], float]:
            def value(means: Floats) -> float:
                ranked = means.reshape(len(panels), len(names))
                return kendall_tau(ranked[0], ranked[at])

            return value

        numbers = sample.several(table, {rule: tau(at) for at, rule in enumerate(RULES, start=1)})
        return Finding(tuple(numbers), every(above(one, 0.8) for one in numbers), tuple(numbers))

    @row(
        f"threshold_free.nineteen.{where}",
        at,
        "19 thresholds are enough.",
        "height over 19 thresholds minus the exact integral over all thresholds, mean over methods, within ±0.005",
    )
    def nineteen(sample: Sample) -> Finding:
        gap = (sample.panel(MAIN) - sample.panel("exact_auc_iou"))[sample.contestants]
        mean = sample.of_column("mean difference", gap.mean(axis=1))
        largest = Number("largest of one map", float(gap.abs().max().max()), np.nan, np.nan, len(gap))
        return Finding((mean, largest), near(mean, 0, 0.005), (mean,))


FRACTIONS = tuple(k / 10 for k in range(1, 10))


def by_removed_share(sample: Sample, metric: str) -> list[pd.DataFrame]:
    """Pictures × methods of a flipping curve, read off at nine removed shares, turned so that higher is better."""
    curves = sample.results.curves
    rows = curves[(curves["metric"] == metric) & curves["method"].isin(sample.contestants)]
    heights = np.stack(
        [
            -np.interp(FRACTIONS, np.asarray(x, dtype=float), np.asarray(y, dtype=float))
            for x, y in zip(rows["x"], rows["y"], strict=True)
        ]
    )
    index = pd.MultiIndex.from_frame(rows[["image", "method"]])
    return [pd.Series(heights[:, at], index).unstack("method") for at in range(len(FRACTIONS))]


for at, where in ((flipping.EMBEDDED, "embedded"), (flipping.PHOTOS, "photos")):

    @row(
        f"threshold_free.single_fraction.{where}",
        at,
        "Single-fraction deletion scores have the same bias (the paper's open question).",
        "the answer after one removed share (0.1 … 0.9), most relevant first: pairs of methods clearly in one order at "
        "one share and in the other at another",
    )
    def single_fraction(sample: Sample) -> Finding:
        tables = by_removed_share(sample, "mif(occlusion=mean/slic)")
        winners = {str(table.mean().idxmax()) for table in tables}
        clear, changed, pairs = reversed_pairs(sample, tables)
        n = len(tables[0])
        numbers = (
            count_of("different winners", len(winners), n),
            count_of(f"pairs of {pairs} that change order", changed, n),
            count_of("clearly so", clear, n),
        )
        return Finding(numbers, counted(clear > 0) if clear or not changed else "cannot tell")
