"""Relative importance: models and pictures in which it is known what matters more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from heatproof.results.protocol_notes import RelativeImportanceNotes
from heatproof.stats.bootstrap import wilson
from heatproof.stats.ranks import kendall_tau
from heatproof.stats.relative_importance import pearson, violations
from ledger.number import Finding, Number, above, below, counted, every, near
from ledger.rows import paper, recipe, row
from ledger.sample import Floats, Sample
from ledger.spread import apart

paper(
    "relative_importance",
    "Relative importance (Yang & Kim 2019)",
    """The paper judged nine methods on ResNet-50s trained on COCO objects pasted on MiniPlaces scenes. What was settled
after a look: with clouds as the scene that always carries the object the drop of accuracy did not shrink with k,
because clouds are hard to name once no object covers them; dunes took their place, chosen by accuracies alone, before
any map was judged. TCAV has 20 random counterparts, since with 10 its last two layers fail the published test in the
object model; that test (Welch's, over runs that all share the concept's pictures, as if these were independent) is
passed by sets without any concept far more often than its level says: `tcav(against=sets)` is the stricter one.""",
)

EMBEDDED = recipe(
    "relative_importance",
    "the embedded models and pictures: model contrast (MCS) and input dependence (IDR) on all of them, input "
    "independence (IIR) and objects of another size on half, the k-series on 24 of the scene that always carries the "
    "object. SmoothGrad averages squares, as the published code does.",
    full="--protocols 'relative_importance(pictures=200)'",
    quick="--protocols 'relative_importance(pictures=24,series=False,robustness=False)' --methods "
    "'grad_cam,saliency(signed=True,pooling=positive_sum),input_x_gradient(pooling=positive_sum),"
    "guided_backprop(pooling=positive_sum),guided_grad_cam(pooling=positive_sum),"
    "integrated_gradients(steps=8,pooling=positive_sum),ig_smoothgrad(steps=2,draws=2,mode=squared,pooling=positive_sum),"
    "smoothgrad(method=saliency(signed=True,pooling=positive_sum),draws=6,mode=squared)'",
)
EIGHT = {
    "Grad-CAM": "grad_cam",
    "gradient": "saliency",
    "SmoothGrad": "smoothgrad",
    "IG": "integrated_gradients",
    "IG-SmoothGrad": "ig_smoothgrad",
    "input × gradient": "input_x_gradient",
    "guided backprop": "guided_backprop",
    "guided Grad-CAM": "guided_grad_cam",
}
MULTIPLIED = ("input × gradient", "IG", "IG-SmoothGrad")
THRESHOLD = 0.2  # of IIR, below which the paper calls a method failing


def notes(sample: Sample, part: str) -> RelativeImportanceNotes:
    """What the protocol noted of one part."""
    noted = [one.noted(RelativeImportanceNotes) for one in sample.results.info.of_protocol("relative_importance")]
    return next(one for one in noted if one.part == part)


def main_panel(sample: Sample, metric: str, part: str) -> pd.DataFrame:
    """Pictures × methods on the data set of a part."""
    wanted = notes(sample, part).datasets[0]
    return sample.panel(metric, dataset=wanted)


def gaps(sample: Sample, table: pd.DataFrame, ahead: Sequence[str]) -> tuple[list[Number], list[Number]]:
    """Means of the eight, and each of `ahead` minus every method that is not among them."""
    means = [sample.mean(name, table, label) for name, label in EIGHT.items()]
    rest = [name for name in EIGHT if name not in ahead]
    parts = len(ahead) * len(rest)
    found = [
        sample.difference(f"{one} − {other}", table, EIGHT[one], EIGHT[other], parts=parts)
        for one in ahead
        for other in rest
    ]
    return means, found


@row(
    "relative_importance.premises",
    EMBEDDED,
    "Objects matter to the object model and not to the scene model.",
    "accuracy with objects, without them, and of objects alone, on pictures not trained on",
)
def premises(sample: Sample) -> Finding:
    noted = notes(sample, "idr")
    numbers = []
    for role, accuracy in noted.accuracy.items():
        for what, words in (("composite", "with"), ("without", "without"), ("grey", "alone")):
            share = accuracy.get(what)
            if share is not None:
                low, high = wilson(share, noted.pictures)
                numbers.append(Number(f"{role.replace('_', '-')} model, {words}", share, low, high, noted.pictures))
    broken = violations(noted.accuracy, noted.classes, noted.pictures)
    return Finding(tuple(numbers), counted(not broken), tuple(numbers))


@row(
    "relative_importance.rises",
    EMBEDDED,
    "A scene model is mostly more confident without the object that covers the scene (about 80 to 90 % of inputs).",
    "share of rightly named pictures on which the probability of the true class rises once the object is gone: above "
    "one half for the scene model",
)
def confidence_rises(sample: Sample) -> Finding:
    noted = notes(sample, "idr")
    numbers = []
    for role, share in noted.rises.items():
        if share is not None:
            low, high = wilson(share, noted.pictures)
            numbers.append(Number(f"{role.replace('_', '-')} model", share, low, high, noted.pictures))
    scene = tuple(one for one in numbers if one.what == "scene model")
    return Finding(tuple(numbers), every(above(one, 0.5) for one in scene), scene)


@row(
    "relative_importance.contrast",
    EMBEDDED,
    "Grad-CAM leads model contrast among the heatmaps.",
    "mean MCS of the object against the scene model; Grad-CAM minus each other",
)
def contrast(sample: Sample) -> Finding:
    means, found = gaps(sample, main_panel(sample, "mcs", "mcs"), ("Grad-CAM",))
    return Finding((*means, *found), every(above(gap) for gap in found), tuple(found))


@row(
    "relative_importance.contrast_by_rank",
    EMBEDDED,
    "… also by ranks instead of the 99th percentile.",
    "the same, heat by rank",
)
def contrast_by_rank(sample: Sample) -> Finding:
    means, found = gaps(sample, main_panel(sample, "mcs(rule=rank)", "mcs"), ("Grad-CAM",))
    return Finding((*means, *found), every(above(gap) for gap in found), tuple(found))


@row(
    "relative_importance.smoothgrad_third",
    EMBEDDED,
    "SmoothGrad follows Grad-CAM in model contrast.",
    "SmoothGrad's mean MCS minus each other's but Grad-CAM's",
)
def third(sample: Sample) -> Finding:
    table = main_panel(sample, "mcs", "mcs")
    others = [name for name in EIGHT if name not in ("Grad-CAM", "SmoothGrad")]
    found = [
        sample.difference(f"SmoothGrad − {name}", table, EIGHT["SmoothGrad"], EIGHT[name], parts=len(others))
        for name in others
    ]
    return Finding(tuple(found), every(above(gap) for gap in found), tuple(found))


@row(
    "relative_importance.tcav",
    EMBEDDED,
    "TCAV leads model contrast.",
    "TCAV's MCS minus Grad-CAM's, on the pictures that show its concept",
    quick=False,
)
def tcav(sample: Sample) -> Finding:
    table = main_panel(sample, "mcs", "mcs")
    label = next((name for name in table.columns if name.startswith("tcav")), "")
    if not label:
        nothing = Number("TCAV", np.nan, np.nan, np.nan, 0)
        return Finding((nothing,), "cannot tell", (nothing,))
    gap = sample.of_column("TCAV − Grad-CAM", table[label] - table["grad_cam"])
    return Finding((sample.of_column("TCAV", table[label]), gap), above(gap), (gap,))


@row(
    "relative_importance.blind",
    EMBEDDED,
    "Maps that know nothing of the model have no model contrast.",
    "mean MCS of edges, constant, centred and random maps, and of a network with shuffled weights, within ±0.05",
)
def blind(sample: Sample) -> Finding:
    table = main_panel(sample, "mcs", "mcs")
    numbers = tuple(
        sample.mean(name, table, name) for name in ("edges", "constant", "centre", "random", "random_weights")
    )
    return Finding(numbers, every(near(one, 0, 0.05) for one in numbers), numbers)


def series(sample: Sample) -> tuple[dict[str, pd.DataFrame], dict[str, float], list[str]]:
    """Method -> pictures × models of the k-series, the drop of accuracy by model, and the models by k."""
    noted = notes(sample, "series").series
    order = sorted(noted, key=lambda name: noted[name].k)
    label = next(name for name in sample.results.metrics if name.startswith("mcs_relative") and "moved" not in name)
    rows = sample.results.rows(label)
    wide = rows.pivot_table(index=["method", "image"], columns="model", values="value", sort=False)
    tables = {str(method): part.droplevel("method") for method, part in wide.groupby(level="method", sort=False)}
    for table in tables.values():
        table[order[-1]] = 0.0  # the model that all others are held against
    drops = {name: noted[name].drop for name in order}
    return {name: table.reindex(columns=order) for name, table in tables.items()}, drops, order


@row(
    "relative_importance.series",
    EMBEDDED,
    "Grad-CAM follows the k-series best of the heatmaps (r 0.92).",
    "Pearson's r of relative MCS with the drop of accuracy over ten models (Fisher's interval; n is that of models); "
    "Grad-CAM's minus the next",
    quick=False,
)
def k_series(sample: Sample) -> Finding:
    tables, drops, order = series(sample)
    numbers = {}
    for name, start in EIGHT.items():
        method = sample.find(start)
        found = pearson([float(tables[method][one].mean()) for one in order], [drops[one] for one in order])
        numbers[name] = Number(name, found.r, found.low, found.high, found.n)
    rest = max((one for name, one in numbers.items() if name != "Grad-CAM"), key=lambda one: one.value)
    gap = apart(f"Grad-CAM − {rest.what}", numbers["Grad-CAM"], rest)
    return Finding((*numbers.values(), gap), above(gap), (gap,))


@row(
    "relative_importance.steady",
    EMBEDDED,
    "Guided backprop changes least over k.",
    "range of mean relative MCS over k; the smallest of the others minus guided backprop's",
    quick=False,
)
def steady(sample: Sample) -> Finding:
    tables, _, order = series(sample)
    table = pd.concat([tables[sample.find(start)] for start in EIGHT.values()], axis=1, keys=EIGHT)
    at = list(EIGHT).index("guided backprop")

    def ranges(means: Floats) -> Floats:
        each = means.reshape(len(EIGHT), len(order))
        return np.asarray(each.max(axis=1) - each.min(axis=1))

    def ahead(means: Floats) -> float:
        found = ranges(means)
        return float(np.delete(found, at).min() - found[at])

    each = {
        name: (lambda means, place=place: float(ranges(means)[place]))  # type: ignore[misc]
        for place, name in enumerate(EIGHT)
    }
    numbers = sample.several(table, {**each, "the next − guided backprop": ahead})
    return Finding(tuple(numbers), above(numbers[-1]), (numbers[-1],))


@row(
    "relative_importance.dependence",
    EMBEDDED,
    "Grad-CAM and the plain gradient lead input dependence.",
    "mean IDR of the scene model; each of the two minus every other",
)
def dependence(sample: Sample) -> Finding:
    means, found = gaps(sample, main_panel(sample, "idr", "idr"), ("Grad-CAM", "gradient"))
    return Finding((*means, *found), every(above(gap) for gap in found), tuple(found))


@row(
    "relative_importance.dependence_of_regions",
    EMBEDDED,
    "Grad-CAM's and the gradient's input dependence is about the object.",
    "their IDR minus that of a moved region",
)
def dependence_of_regions(sample: Sample) -> Finding:
    own, moved = (main_panel(sample, name, "idr") for name in ("idr", "idr(region=moved)"))
    found = [
        sample.of_column(name, own[sample.find(EIGHT[name])] - moved[sample.find(EIGHT[name])], parts=2)
        for name in ("Grad-CAM", "gradient")
    ]
    return Finding(tuple(found), every(above(gap) for gap in found), tuple(found))


@row(
    "relative_importance.multiplied",
    EMBEDDED,
    "Input-multiplied methods call objects important that are not.",
    "IDR of the three minus that of a moved region: below 0",
)
def multiplied(sample: Sample) -> Finding:
    own, moved = (main_panel(sample, name, "idr") for name in ("idr", "idr(region=moved)"))
    means = [sample.mean(name, own, EIGHT[name]) for name in MULTIPLIED]
    found = [
        sample.of_column(f"{name} − moved", own[sample.find(EIGHT[name])] - moved[sample.find(EIGHT[name])], parts=3)
        for name in MULTIPLIED
    ]
    return Finding((*means, *found), every(below(gap) for gap in found), tuple(found))


@row(
    "relative_importance.random_region",
    EMBEDDED,
    "A random region scores about one half.",
    "IDR of a moved region, every method, within 0.5 ± 0.1",
)
def random_region(sample: Sample) -> Finding:
    table = main_panel(sample, "idr(region=moved)", "idr")
    found = tuple(sample.mean(name, table, label) for name, label in EIGHT.items())
    return Finding(found, every(near(one, 0.5, 0.1) for one in found), found)


@row(
    "relative_importance.independence",
    EMBEDDED,
    "All but Grad-CAM and the gradient fail input independence (below about 20 %).",
    "mean IIR at 10 % under verified null patches: above 0.2 for the two and below it for the others",
)
def independence(sample: Sample) -> Finding:
    table = main_panel(sample, "iir", "iir")
    found = {name: sample.mean(name, table, label) for name, label in EIGHT.items()}
    verdicts = [
        above(one, THRESHOLD) if name in ("Grad-CAM", "gradient") else below(one, THRESHOLD)
        for name, one in found.items()
    ]
    return Finding(tuple(found.values()), every(verdicts), tuple(found.values()))


@row(
    "relative_importance.independence_of_the_blind",
    EMBEDDED,
    "Input independence tells good maps from bad.",
    "mean IIR of maps that know nothing of the model: below 0.2",
)
def independence_of_the_blind(sample: Sample) -> Finding:
    table = main_panel(sample, "iir", "iir")
    names = [name for name in ("constant", "centre", "random", "random_weights", "edges") if name in table]
    found = tuple(sample.mean(name, table, name) for name in names)
    return Finding(found, every(below(one, THRESHOLD) for one in found), found)


@row(
    "relative_importance.stable",
    EMBEDDED,
    "Results are stable when objects change size and place.",
    "Grad-CAM's lead in MCS over each other method with objects of 40 to 50 % of the side",
    quick=False,
)
def stable(sample: Sample) -> Finding:
    first, second = (main_panel(sample, "mcs", part) for part in ("mcs", "robustness"))
    _, found = gaps(sample, second, ("Grad-CAM",))
    names = [sample.find(label) for label in EIGHT.values()]
    tau = kendall_tau(first[names].mean().to_numpy(), second[names].mean().to_numpy())
    agreement = Number("Kendall's tau of the two rankings", tau, np.nan, np.nan, len(second))
    return Finding((agreement, *found), every(above(gap) for gap in found), tuple(found))
