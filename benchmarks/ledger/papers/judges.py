"""What is said of metrics: that robustness does not see a random map, and that sparse maps score better."""

from __future__ import annotations

import pandas as pd

from heatproof.stats.judges.sums import spearman
from ledger.number import Finding, above, below, every
from ledger.rows import paper, recipe, row
from ledger.sample import Sample

paper(
    "judges",
    "Metrics on trial (MetaQuantus, Hedström et al. 2023, and others)",
    """More on every metric: [the judges judged](judges.md).""",
)

ROBUSTNESS = recipe(
    "judges_robustness",
    "the embedded object model, four methods and blind controls, 8 noisy copies of each picture.",
    full="--protocols 'robustness(draws=8)' --limit 32 "
    "--methods 'saliency,input_x_gradient,integrated_gradients(steps=8),grad_cam'",
)
SPARSITY = recipe(
    "judges_sparsity",
    "the embedded object model, nine methods of different sparsity.",
    full="--model embedded:object --images two_factor --limit 48 "
    "--metrics srg,insertion,single_deletion,auc_iou,sparseness "
    "--methods 'saliency,input_x_gradient,integrated_gradients(steps=8),smoothgrad(draws=6),guided_backprop,deep_lift,"
    "lrp,grad_cam,pred_diff'",
)
REAL = ("saliency", "input_x_gradient", "integrated_gradients", "grad_cam")
JUDGES = {"SRG": "srg", "insertion": "insertion", "single deletion": "single_deletion", "AUC-IoU": "auc_iou"}


@row(
    "judges.sensitivity",
    ROBUSTNESS,
    "Sensitivity metrics do not flag random explanations.",
    "average sensitivity, lower is better, of a random map that is drawn once per picture, less that of each method",
)
def sensitivity(sample: Sample) -> Finding:
    table = sample.panel("avg_sensitivity(draws=8)")
    means = [sample.mean(name, table, name) for name in ("random", *REAL)]
    gaps = [sample.difference(f"random − {name}", table, "random", name, parts=len(REAL)) for name in REAL]
    return Finding((*means, *gaps), every(below(gap) for gap in gaps), tuple(gaps))


@row(
    "judges.faithfulness",
    ROBUSTNESS,
    "A faithfulness metric does.",
    "single deletion, higher is better, of each method less that of the random map",
)
def faithfulness(sample: Sample) -> Finding:
    table = sample.panel("single_deletion")
    gaps = [sample.difference(f"{name} − random", table, name, "random", parts=len(REAL)) for name in REAL]
    return Finding(tuple(gaps), every(above(gap) for gap in gaps), tuple(gaps))


@row(
    "judges.sparsity",
    SPARSITY,
    "Sparsity drives the scores of metrics.",
    "rank correlation over methods of a picture's score with the map's sparseness (Gini index), mean over pictures",
)
def sparsity(sample: Sample) -> Finding:
    sparse = sample.panel("sparseness")[sample.contestants]
    numbers = []
    for what, metric in JUDGES.items():
        scores = sample.panel(metric)[sample.contestants]
        both = [image for image in scores.index if image in sparse.index]
        found = pd.Series({image: spearman(scores.loc[image], sparse.loc[image]) for image in both})
        numbers.append(sample.of_column(what, found.reindex(scores.index), parts=len(JUDGES)))
    return Finding(tuple(numbers), every(above(one) for one in numbers), tuple(numbers))
