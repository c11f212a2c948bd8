"""Mosaics: is relevance positive on tiles of the class and negative elsewhere, and do mosaics rank methods alike?"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from heatproof.stats.reliability import alpha_interval
from ledger.number import Finding, Number, Verdict, above, below, every, some
from ledger.rows import paper, recipe, row
from ledger.sample import Sample, intervals
from ledger.spread import apart, resampled

paper(
    "mosaics",
    "Mosaics (Fresz et al. 2024)",
    """Raw LRP (zennit's rules) turns its whole map round where the target's logit is negative, by the epsilon rule's
division; it is kept upright here. CAMs are taken after the activation: on a last batch norm, before its rectifier,
Grad-CAM++ has no positive relevance at all on many mosaics of photos. No picture stands in two mosaics of a pair
where there are enough. KernelSHAP's blocks never straddle two tiles, an advantage no other method has. The embedded
networks name nearly all held-out pictures of all ten objects rightly, so the hard pair may not be hard enough to
show what the paper saw.""",
)

EMBEDDED = recipe(
    "mosaics",
    "mosaics of four embedded pictures per pair of classes (easy: ring and bolt; hard: gear and flower) on a residual "
    "network, a plain one and a B-cos network; the paper's methods, LIME with 300 samples.",
    full="--protocols 'mosaics(per_class=40)'",
    quick="--protocols 'mosaics(per_class=4)' --methods "
    "'lrp(composite=epsilon_plus_box,start=logit,biases=False),integrated_gradients(steps=8,baseline=mid_grey),grad_cam,"
    "grad_cam_pp,smoothgrad(draws=4,noise=0.2),bcos'",
)
PAIR = "mosaic(folder(path={{photos}}),pair=[{pair}],per_class=50,apart=True)"
PHOTOS = recipe(
    "mosaics_photos",
    "mosaics of photos per pair (tabby and sports car; the two mountain dogs) on EfficientNet-Lite0 and -Lite1, with "
    "fewer steps and samples and without B-cos, whose ImageNet weights do not come with the package.",
    full="--model efficientnet-lite0 --model efficientnet-lite1 "
    + " ".join(f"--images '{PAIR.format(pair=pair)}'" for pair in ("281,817", "238,239"))
    + " --protocols mosaics --methods 'lrp(composite=epsilon_plus_box,start=logit,biases=False),"
    "integrated_gradients(steps=8,baseline=mid_grey),grad_cam,grad_cam_pp,smoothgrad(draws=4,noise=0.2),"
    "kernel_shap(occlusion=constant(colour=[0.5])/grid(side=4),samples=60)'",
)
RATIOS = ("precision", "recall", "specificity", "accuracy", "f1")
PRECISION = "mosaic_precision"
FEWEST = 3  # methods, before an alpha of rankings says anything


def places(sample: Sample) -> dict[str, tuple[str, str]]:
    """Model -> its easy and its hard data set, which are named in this order."""
    found: dict[str, list[str]] = {}
    for dataset, model in sample.results.settings:
        found.setdefault(model, []).append(dataset)
    return {model: (one, other) for model, (one, other) in found.items()}


def own(sample: Sample, metric: str, model: str, dataset: str) -> pd.DataFrame:
    """Mosaics × methods without controls; methods that have a score on hardly any are left out."""
    table = sample.panel(metric, model, dataset)
    table = table[[name for name in table.columns if name in sample.contestants]]
    return table.loc[:, table.notna().mean() >= 0.5]


def short(model: str) -> str:
    return {"embedded:object": "residual", "embedded:object_plain": "plain", "embedded:object_bcos": "B-cos"}.get(
        model, model.removeprefix("efficientnet-")
    )


def alpha(table: pd.DataFrame, what: str) -> Number:
    found = alpha_interval(table.to_numpy())
    return Number(what, found.alpha, found.low, found.high, found.n_mosaics)


def correlation(ranked: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    """Mean Spearman correlation of two methods over these mosaics."""
    ranks = stats.rankdata(ranked[rows], axis=0)
    with np.errstate(invalid="ignore"):
        matrix = np.corrcoef(ranks.T)
    return float(np.nanmean(matrix[np.triu_indices(len(matrix), 1)]))


def one_of_all(sample: Sample, model: str, dataset: str) -> tuple[int, Verdict]:
    """How many methods lead a ratio, and whether two ratios clearly put some pair in opposite orders."""
    tables = [own(sample, f"mosaic_{ratio}", model, dataset) for ratio in RATIOS]
    winners = {str(table.mean().idxmax()) for table in tables}
    if len(winners) > 1:
        return len(winners), "held"
    best = winners.pop()
    pairs = sum(len(table.columns) - 1 for table in tables)
    lows = []
    for table in tables:
        gaps = table.drop(columns=best).rsub(table[best], axis=0).dropna()
        if gaps.empty:
            return 1, "cannot tell"
        lows.append(intervals(gaps, sample.groups(gaps.index), 1 - 0.05 / pairs)["low"].min())
    return 1, "not held" if min(lows) > 0 else "cannot tell"


for at, where in ((EMBEDDED, "embedded"), (PHOTOS, "photos")):

    @row(
        f"mosaics.winner.{where}",
        at,
        "No method wins every metric",
        "how many methods lead precision, recall, specificity, accuracy or F1 by their mean, each of "
        "those that have it",
    )
    def winner(sample: Sample) -> Finding:
        numbers, verdicts = [], []
        for model, pair in places(sample).items():
            for kind, dataset in zip(("easy", "hard"), pair, strict=True):
                count, verdict = one_of_all(sample, model, dataset)
                n = len(own(sample, PRECISION, model, dataset))
                numbers.append(Number(f"{short(model)}, {kind}", count, np.nan, np.nan, n, unit="count"))
                verdicts.append(verdict)
        return Finding(tuple(numbers), every(verdicts))

    @row(
        f"mosaics.alpha.{where}",
        at,
        "Alpha is lower on the pair that is easily confused",
        "Krippendorff's alpha of precision, easy minus hard",
    )
    def alphas(sample: Sample) -> Finding:
        numbers, gaps = [], []
        for model, pair in places(sample).items():
            easy, hard = (
                alpha(own(sample, PRECISION, model, dataset), f"{short(model)} {kind}")
                for kind, dataset in zip(("easy", "hard"), pair, strict=True)
            )
            numbers += [easy, hard]
            gaps.append(apart(f"{short(model)}, easy − hard", easy, hard))
        return Finding((*numbers, *gaps), every(above(gap) for gap in gaps), tuple(gaps))

    @row(
        f"mosaics.correlation.{where}",
        at,
        "Methods correlate more on that pair",
        "mean Spearman correlation of precision between two methods, hard minus easy",
    )
    def correlations(sample: Sample) -> Finding:
        numbers, gaps = [], []
        for model, pair in places(sample).items():
            both = []
            for kind, dataset in zip(("easy", "hard"), pair, strict=True):
                table = own(sample, PRECISION, model, dataset).dropna().to_numpy()
                both.append(resampled(f"{short(model)} {kind}", len(table), partial(correlation, table)))
            numbers += both
            gaps.append(apart(f"{short(model)}, hard − easy", both[1], both[0]))
        return Finding((*numbers, *gaps), every(above(gap) for gap in gaps), tuple(gaps))

    @row(
        f"mosaics.lower.{where}",
        at,
        "Scores are lower on that pair",
        "precision, mean over methods, easy minus hard",
    )
    def lower(sample: Sample) -> Finding:
        numbers, gaps = [], []
        for model, pair in places(sample).items():
            easy, hard = (
                sample.of_column(f"{short(model)} {kind}", own(sample, PRECISION, model, dataset).mean(axis=1))
                for kind, dataset in zip(("easy", "hard"), pair, strict=True)
            )
            numbers += [easy, hard]
            gaps.append(apart(f"{short(model)}, easy − hard", easy, hard))
        return Finding((*numbers, *gaps), every(above(gap) for gap in gaps), tuple(gaps))

    @row(
        f"mosaics.architecture.{where}",
        at,
        "Metric consistency depends on the architecture",
        "alpha of the methods that two networks share (residual and plain; Lite0 and Lite1), three or more, "
        "first minus second",
    )
    def architecture(sample: Sample) -> Finding:
        first, second = [model for model in places(sample) if "bcos" not in model][:2]
        gaps = []
        for kind, datasets in zip(
            ("easy", "hard"), zip(places(sample)[first], places(sample)[second], strict=True), strict=True
        ):
            for ratio in RATIOS:
                one, other = (
                    own(sample, f"mosaic_{ratio}", model, dataset)
                    for model, dataset in zip((first, second), datasets, strict=True)
                )
                shared = [name for name in one.columns if name in other.columns]
                if len(shared) >= FEWEST:
                    gaps.append(apart(f"{ratio}, {kind}", alpha(one[shared], ratio), alpha(other[shared], ratio)))
        return Finding(tuple(gaps), some(every_side(gap) for gap in gaps), tuple(gaps))


def every_side(gap: Number) -> Verdict:
    """Whether the two differ, whichever is larger; ten differences share the 5 %."""
    reach = float(stats.norm.ppf(1 - 0.025 / 10) / stats.norm.ppf(0.975))
    wide = Number("", gap.value, *(gap.value + reach * (edge - gap.value) for edge in (gap.low, gap.high)), gap.n)
    return "held" if "held" in (above(wide), below(wide)) else "cannot tell"


@row(
    "mosaics.bcos_precision.embedded",
    EMBEDDED,
    "B-cos: high precision",
    "mean precision of B-cos contributions minus that of each other method on the same network",
)
def bcos_precision(sample: Sample) -> Finding:
    numbers, gaps = [], []
    model = "embedded:object_bcos"
    for kind, dataset in zip(("easy", "hard"), places(sample)[model], strict=True):
        table = own(sample, PRECISION, model, dataset)
        others = [name for name in table.columns if name != "bcos"]
        numbers.append(sample.of_column(f"B-cos, {kind}", table["bcos"]))
        for other in others:
            gap = (table["bcos"] - table[other]).dropna()
            gaps.append(sample.of_column(f"− {other.partition('(')[0]}, {kind}", gap, parts=2 * len(others)))
    return Finding((*numbers, *gaps), every(above(gap) for gap in gaps), tuple(gaps))


@row(
    "mosaics.bcos_specificity.embedded",
    EMBEDDED,
    "B-cos: low specificity",
    "mean specificity of B-cos contributions, below 0.5, which is chance",
)
def bcos_specificity(sample: Sample) -> Finding:
    model = "embedded:object_bcos"
    numbers = tuple(
        sample.of_column(f"B-cos, {kind}", own(sample, "mosaic_specificity", model, dataset)["bcos"])
        for kind, dataset in zip(("easy", "hard"), places(sample)[model], strict=True)
    )
    return Finding(numbers, every(below(one, 0.5) for one in numbers), numbers)
