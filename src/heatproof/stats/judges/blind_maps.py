"""Gaming: the best score of a map that sees no model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from heatproof.stats.bootstrap import FloatArray, Interval
from heatproof.stats.judges.evidence import Evidence
from heatproof.stats.judges.sums import mean_of, nanmean, ratio

SPLITS = 50  # into halves


@dataclass(frozen=True)
class BlindMaps:
    """What maps earn that see no model, on the scale on which noise is 0 and the truth 1."""

    skill: Mapping[str, float]
    best: str  # "" where no blind map has a score
    fitted: float  # skill of the blind map that does best on other pictures
    behind_truth: Interval  # the truth's score less that of the fitted blind map, in units of the range
    behind_real: Interval  # likewise of the best real method


def blind_maps(found: Evidence, gap: float) -> BlindMaps:
    """The blind map is chosen for each picture by its scores on other ones.

    The best of many means on the same pictures would be too good by selection alone.
    """
    rows, base = found.named("blind"), float(nanmean(found.rows("noise")))
    scores = np.stack(list(rows.values())) if rows else np.full((1, found.scores.shape[1]), np.nan)
    means = nanmean(scores, 1)
    skill = {name: ratio(float(mean) - base, gap) for name, mean in zip(rows, means, strict=False)}
    truth, unit = found.rows("truth")[0], abs(gap) or 1.0
    if not np.isfinite(means).any():
        nothing = mean_of(np.full(len(truth), np.nan))
        return BlindMaps(skill, "", float("nan"), nothing, nothing)
    fitted = fitted_elsewhere(scores)
    best = list(rows)[int(np.nanargmax(means))]
    real = found.rows("real")
    strength = nanmean(real, 1)
    strongest = real[int(np.nanargmax(strength))] if np.isfinite(strength).any() else np.full(len(truth), np.nan)
    return BlindMaps(
        skill,
        best,
        ratio(float(nanmean(fitted)) - base, gap),
        mean_of((truth - fitted) / unit),
        mean_of((strongest - fitted) / unit),
    )


def fitted_elsewhere(scores: FloatArray) -> FloatArray:
    """Per picture, the score of the row of (maps, pictures) whose mean on a half without this picture is best.

    Averaged over random halves; two pictures at least.
    """
    n = scores.shape[1]
    dice, sums, counts = np.random.default_rng(0), np.zeros(n), np.zeros(n)
    for _ in range(SPLITS):
        drawn = dice.permutation(n)
        for chosen_on, judged_on in ((drawn[: n // 2], drawn[n // 2 :]), (drawn[n // 2 :], drawn[: n // 2])):
            means = nanmean(scores[:, chosen_on], 1)
            if np.isfinite(means).any():
                row = scores[int(np.nanargmax(means)), judged_on]
                known = np.isfinite(row)
                sums[judged_on[known]] += row[known]
                counts[judged_on[known]] += 1
    with np.errstate(invalid="ignore"):
        return sums / counts
