"""One table: how far does each evaluation leave the data?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from heatproof.attribute import attribute
from heatproof.audit.energy import energies
from heatproof.audit.evaluation import Evaluation, changes_pictures, follows_map, random_maps
from heatproof.audit.image_quality import MEASURES, Measure, quality
from heatproof.audit.smoothness import confidences, kendall, mean_height
from heatproof.errors import BadInput
from heatproof.occlusion.occluded_images import Samples
from heatproof.stats.falling import mean_curve_tau
from heatproof.stats.out_of_distribution import auroc, fpr95
from heatproof.types import AnyMethod, Attribution, Batch, Model


@dataclass(frozen=True)
class Audit:
    """What is measured of every evaluation."""

    measures: tuple[Measure, ...] = MEASURES
    smoothness: bool = True  # with the random and inverted controls


def table(
    model: Model,
    batch: Batch,
    evaluations: Mapping[str, Evaluation],
    methods: Sequence[AnyMethod],
    audit: Audit | None = None,
) -> pd.DataFrame:
    """Evaluations × statistics, each computed per method and level over the images and then averaged.

    AUROC and FPR95 of the energy score (0.5 and, on many pictures, 0.95 where samples cannot be told from originals),
    the quality measures against the originals, Kendall's tau of the confidence curves beside that of the mean curve and
    of the controls, and R-OMS, the confidence that a random order leaves; the last three are NaN where the map has no
    say in what is removed, that of the mean curve where pictures do not share their levels. Of natural pictures as a
    reference (`OtherClasses`) there is the energy score alone.
    """
    audit = audit or Audit()
    if not methods or not evaluations:
        raise BadInput("an audit needs at least one evaluation and one method")
    explained = [attribute(model, batch, method) for method in methods]
    rows = {name: _row(one, explained, audit) for name, one in evaluations.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def _row(evaluation: Evaluation, explained: Sequence[Attribution], audit: Audit) -> dict[str, float]:
    parts = [_statistics(evaluation, attribution, audit) for attribution in explained]
    row = {name: float(np.mean([part[name] for part in parts])) for name in parts[0]}
    if audit.smoothness and not follows_map(evaluation):
        row.update(dict.fromkeys(("tau_inverted", "tau_random", "r_oms"), float("nan")))
    elif audit.smoothness:
        # The random order is the same whatever the method.
        chance = replace(explained[0], maps=random_maps(explained[0].batch))
        curve = confidences(chance, evaluation.samples(chance))
        row["tau_random"] = float(kendall(*curve).mean())
        row["r_oms"] = float(mean_height(curve).mean())
    return row


def _statistics(evaluation: Evaluation, attribution: Attribution, audit: Audit) -> dict[str, float]:
    samples = evaluation.samples(attribution)
    count, levels = samples.images.shape[:2]
    originals = attribution.batch.images
    nothing = torch.zeros(count, 1)
    whole = energies(attribution.model, Samples(originals[:, None], nothing))[:, 0].numpy()
    strange = energies(attribution.model, samples).numpy()
    told = {
        "auroc": float(np.mean([auroc(whole, strange[:, level]) for level in range(levels)])),
        "fpr95": float(np.mean([fpr95(whole, strange[:, level]) for level in range(levels)])),
    }
    if not changes_pictures(evaluation):
        return told | dict.fromkeys([*audit.measures, *["tau", "tau_mean_curve"] * audit.smoothness], float("nan"))
    repeated, removed = originals.repeat_interleave(levels, 0), samples.removed.flatten()
    for measure in audit.measures:
        told[measure] = float(quality(measure, samples.images.flatten(0, 1), repeated, removed).mean())
    if audit.smoothness:
        curve = confidences(attribution, samples)
        told["tau"] = float(kendall(*curve).mean())
        told["tau_mean_curve"] = mean_curve_tau(curve.x.numpy(), curve.y.numpy())
    if audit.smoothness and follows_map(evaluation):
        turned = replace(attribution, maps=-attribution.maps)
        told["tau_inverted"] = float(kendall(*confidences(turned, evaluation.samples(turned))).mean())
    return told
