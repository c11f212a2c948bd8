"""FUD beside the classic evaluations: how far each leaves the data, and what its parts do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.results.protocol_notes import InDistributionNotes
from heatproof.stats.out_of_distribution import auroc
from heatproof.stats.ranks import kendall_tau
from ledger.number import Finding, Number, above, below, every, near, some
from ledger.rows import paper, recipe, row
from ledger.sample import Floats, Sample
from ledger.spread import resampled

paper("in_distribution", "In-distribution faithfulness (FUD, ICLR 2026)")

EMBEDDED = recipe(
    "in_distribution",
    "the embedded object model and pictures (64×64), the embedded prior, `fast` profile; the audit is of integrated "
    "gradients and a random order at nine levels.",
    full="--protocols 'in_distribution(pictures=64)'",
    quick="--protocols 'in_distribution(pictures=12,draws=1)' --methods "
    "'integrated_gradients(steps=16),random,saliency,fast_ig,guided_ig(steps=15),mfaba(steps=20,step_size=0.0025),oracle'",
)
GAIN = "fud(score=gain, controls=[random])"
FUD = "fud(controls=[random,no_guidance,guidance_only,prior_only])"
QUALITY = {"psnr": 1, "ssim": 1, "ms_ssim": 1, "fsim": 1, "gmsd": -1, "haarpsi": 1, "vsi": 1}
CLASSIC = ("flipping, zero", "deletion", "insertion")
SMALL_SETS = ("sensitivity-n", "infidelity")


def labels(sample: Sample) -> dict[tuple[str, str], str]:
    """(evaluation, statistic) -> label of its metric."""
    for study in sample.results.info.of_protocol("in_distribution"):
        audit = study.noted(InDistributionNotes).audit
        if audit:
            return {(part.evaluation, part.statistic): label for label, part in audit.items()}
    return {}


def energies(sample: Sample, evaluation: str) -> NDArray[np.float64]:
    """(pictures, methods, levels), the untouched picture first."""
    curves = sample.results.curves
    rows = curves[curves["metric"] == labels(sample)[evaluation, "energy"]]
    wide = rows.pivot_table(index="image", columns="method", values="y", aggfunc="first", sort=True).dropna()
    return np.array([[np.asarray(cell, dtype=float) for cell in line] for line in wide.to_numpy()])


def separation(found: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    """AUROC of the energy per method and level, then the mean; 0.5 if nothing tells samples from originals."""
    chosen = found[rows]
    areas = [
        auroc(chosen[:, at, 0], chosen[:, at, level])
        for at in range(chosen.shape[1])
        for level in range(1, chosen.shape[2])
    ]
    return float(np.mean(areas))


def nearer(sample: Sample, others: tuple[str, ...]) -> Finding:
    """How much further than FUD's the samples of other evaluations are from the originals, by AUROC."""
    found = {name: energies(sample, name) for name in ("fud", *others)}
    n = min(len(one) for one in found.values())
    each = [resampled(name, n, lambda rows, one=one: separation(one, rows)) for name, one in found.items()]  # type: ignore[misc]
    gaps = [
        resampled(
            f"{name} further than FUD",
            n,
            lambda rows, one=found[name]: abs(separation(one, rows) - 0.5) - abs(separation(found["fud"], rows) - 0.5),  # type: ignore[misc]
        )
        for name in others
    ]
    return Finding((*each, *gaps), every(above(gap) for gap in gaps), tuple(gaps))


@row(
    "in_distribution.nearer_than_deletion",
    EMBEDDED,
    "FUD's samples are nearer the data than those of insertion and deletion",
    "AUROC of the model's energy score (0.5 is best); its distance from 0.5 minus FUD's",
)
def deletion(sample: Sample) -> Finding:
    return nearer(sample, CLASSIC)


@row(
    "in_distribution.nearer_than_sensitivity",
    EMBEDDED,
    "… and than those of sensitivity-n and infidelity",
    "the same; both change less of the picture, to the mean colour",
)
def small_sets(sample: Sample) -> Finding:
    return nearer(sample, SMALL_SETS)


def quality(sample: Sample, better: str, worse: str, parts: int) -> list[Number]:
    """By how much one evaluation's samples are better than another's, mean over methods, for each measure."""
    found = []
    for measure, sign in QUALITY.items():
        one, other = (sample.panel(labels(sample)[name, measure]).mean(axis=1) for name in (better, worse))
        found.append(sample.of_column(f"{measure}, − {worse}", sign * (one - other), parts=parts))
    return found


@row(
    "in_distribution.quality",
    EMBEDDED,
    "FUD is best on seven quality measures",
    "PSNR, SSIM, MS-SSIM, FSIM, GMSD, HaarPSI and VSI against the originals, FUD minus zero fill, deletion and "
    "insertion (GMSD the other way round, so that more is better)",
)
def best_quality(sample: Sample) -> Finding:
    gaps = [gap for name in CLASSIC for gap in quality(sample, "fud", name, len(CLASSIC) * len(QUALITY))]
    return Finding(tuple(gaps), every(above(gap) for gap in gaps), tuple(gaps))


@row(
    "in_distribution.hard_mask",
    EMBEDDED,
    "The hard mask beats the soft one",
    "the seven quality measures, hard minus soft, and how much nearer 0.5 the AUROC is",
)
def hard_mask(sample: Sample) -> Finding:
    gaps = quality(sample, "fud", "fud, soft mask", len(QUALITY))
    (area,) = nearer(sample, ("fud, soft mask",)).deciding
    return Finding((*gaps, area), every(above(gap) for gap in (*gaps, area)), (*gaps, area))


@row(
    "in_distribution.smoother",
    EMBEDDED,
    "Confidence falls more smoothly under FUD",
    "Kendall's tau of kept share and confidence, FUD minus zero fill, deletion and insertion",
)
def smoother(sample: Sample) -> Finding:
    taus = {name: sample.panel(labels(sample)[name, "tau"]).mean(axis=1) for name in ("fud", *CLASSIC)}
    each = [sample.of_column(name, values) for name, values in taus.items()]
    gaps = [sample.of_column(f"FUD − {name}", taus["fud"] - taus[name], parts=len(CLASSIC)) for name in CLASSIC]
    return Finding((*each, *gaps), every(above(gap) for gap in gaps), tuple(gaps))


def detail(sample: Sample, metric: str, name: str) -> pd.DataFrame:
    """Pictures × methods of a number beside a score."""
    rows = sample.results.details
    rows = rows[(rows["metric"] == metric) & (rows["detail"] == name)]
    return rows.pivot_table(index="image", columns="method", values="value", sort=False)


@row(
    "in_distribution.smoothness_of_maps",
    EMBEDDED,
    "… and smoothness speaks for the maps",
    "tau under FUD, in the order of the map minus that of the random and of the inverted order",
)
def smoothness_of_maps(sample: Sample) -> Finding:
    label = labels(sample)["fud", "tau"]
    method = sample.find("integrated_gradients")
    own = sample.panel(label)[method]
    gaps = [
        sample.of_column(f"own − {name}", own - detail(sample, label, name)[method], parts=2)
        for name in ("random", "inverted")
    ]
    return Finding((sample.of_column("own order", own), *gaps), every(above(gap) for gap in gaps), tuple(gaps))


@row(
    "in_distribution.order",
    EMBEDDED,
    "A better order keeps more confidence",
    "FUD of the oracle order minus that of a random one, and integrated gradients minus their inverted order",
)
def order(sample: Sample) -> Finding:
    table = sample.panel(FUD)
    pairs = (("oracle", "random"), ("integrated_gradients", "inverted"))
    means = [sample.mean(one, table, one) for pair in pairs for one in pair]
    gaps = [sample.difference(f"{a} − {b}", table, a, b, parts=2) for a, b in pairs]
    return Finding((*means, *gaps), every(above(gap) for gap in gaps), tuple(gaps))


@row(
    "in_distribution.guidance",
    EMBEDDED,
    "The anti-class term keeps the class from being painted back",
    "FUD minus the same without guidance: below 0, and by more than 0.01",
)
def guidance(sample: Sample) -> Finding:
    methods = sample.contestants
    gap = (sample.panel(FUD)[methods] - detail(sample, FUD, "no_guidance")[methods]).mean(axis=1)
    number = sample.of_column("with − without", gap)
    return Finding((number,), below(number, -0.01), (number,))


@row(
    "in_distribution.prior",
    EMBEDDED,
    "The prior itself costs no confidence",
    "confidence where the prior alone draws and nothing is removed, minus that of the untouched picture, within ±0.01",
)
def prior(sample: Sample) -> Finding:
    gap = (detail(sample, FUD, "prior_only") - detail(sample, FUD, "clean")).mean(axis=1)
    number = sample.of_column("prior alone − untouched", gap)
    return Finding((number,), near(number, 0, 0.01), (number,))


@row(
    "in_distribution.classic_rankings",
    EMBEDDED,
    "FUD ranks methods otherwise than the classic metrics",
    "Kendall's tau of FUD's ranking of eleven methods (gain over a random order) with each: below 0.5 for some",
)
def classic_rankings(sample: Sample) -> Finding:
    names = sample.contestants
    metrics = {"insertion": 1, "deletion": -1, "sensitivity_n": 1, "infidelity": -1, "road": 1}
    kept = {name: sign for name, sign in metrics.items() if name in sample.results.metrics}
    panels = [sample.panel(GAIN)[names], *(sign * sample.panel(name)[names] for name, sign in kept.items())]

    def tau(at: int) -> Callable[[Floats], float]:
        def value(means: Floats) -> float:
            ranked = means.reshape(len(panels), len(names))
            return kendall_tau(ranked[0], ranked[at])

        return value

    table = pd.concat(panels, axis=1, keys=range(len(panels)))
    numbers = sample.several(table, {name: tau(at) for at, name in enumerate(kept, start=1)})
    return Finding(tuple(numbers), some(below(one, 0.5) for one in numbers), tuple(numbers))
