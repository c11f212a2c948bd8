"""Luck: how far a random method's scores depend on its seed, beside how far they differ between pictures.

The variance of one score over pictures is that of pictures plus that of luck: intervals and tests hold both already,
since every picture has dice of its own. Luck alone says how far the mean would move under another seed, and what more
samples in the method would gain.

Paper: Searle, Casella & McCulloch 1992, "Variance Components", ch. 3 (the moment estimators of the one-way layout)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from heatproof.errors import BadInput


@dataclass(frozen=True)
class Luck:
    """Standard deviations of a method's scores; NaN where there are too few.

    `low` and `high` are a 95 % interval of `luck` by the chi-squared distribution: it takes luck for normal and for the
    same on every picture, and is rough where it is not.
    """

    method: str
    mean: float  # over all pictures, under the study's seed
    spread: float  # over all pictures, under the study's seed: pictures and luck together
    luck: float  # over seeds, of one picture
    low: float
    high: float
    pictures: int  # judged in all,
    repeated: int  # judged again,
    seeds: int  # under so many seeds, the study's own among them

    @property
    def share(self) -> float:
        """Of the variance over pictures, how much is luck; the estimate may exceed 1."""
        return (self.luck / self.spread) ** 2 if self.spread > 0 else float("nan")

    @property
    def moves(self) -> float:
        """By how much the mean over all pictures moves from one seed to another: its standard deviation over seeds."""
        return self.luck / np.sqrt(self.pictures) if self.pictures else float("nan")


def luck_of(method: str, scores: pd.Series[float], again: pd.DataFrame, level: float = 0.95) -> Luck:
    """From the scores of all pictures, and those of a few under other seeds (pictures × seeds), NaN where missing."""
    own = scores.dropna()
    strange = again.index.difference(scores.index)
    if len(strange):
        raise BadInput(f"pictures judged again must be among those judged, got {strange[0]!r} for {method}.")
    every = pd.concat([scores.reindex(again.index), again], axis=1).to_numpy(dtype=np.float64)
    there = ~np.isnan(every)
    count = there.sum(axis=1)
    every, there, count = every[count > 1], there[count > 1], count[count > 1]
    freedom = int((count - 1).sum())
    nothing = float("nan")
    luck = low = high = nothing
    if freedom:
        centre = np.where(there, every, 0.0).sum(axis=1) / count
        squares = float((np.where(there, every - centre[:, None], 0.0) ** 2).sum())
        luck = float(np.sqrt(squares / freedom))
        low, high = (float(np.sqrt(squares / stats.chi2.ppf(p, freedom))) for p in ((1 + level) / 2, (1 - level) / 2))
    mean = float(own.mean()) if len(own) else nothing
    spread = float(own.std(ddof=1)) if len(own) > 1 else nothing
    return Luck(method, mean, spread, luck, low, high, len(own), len(every), int(count.max(initial=1)))
