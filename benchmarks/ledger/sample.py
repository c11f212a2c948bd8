"""The scores of one recipe, and numbers read off them with intervals that allow for groups of pictures.

Pictures that share a group (a patient, a source photo; on the embedded data an object or a scene) are not independent.
Here all groups but classes count as samples of many, so that a claim speaks for objects and scenes that were not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.errors import UnknownName
from heatproof.results import Results
from heatproof.stats.bootstrap import expanded_tails, resampled_means
from heatproof.stats.bootstrap_t import RESAMPLES as BOOTSTRAPS
from heatproof.stats.decisions import FINE
from heatproof.stats.groups import Groups, Kind
from heatproof.stats.mean_interval import mean_intervals
from ledger.number import Number

RESAMPLES = 1000
CLASS = "class"
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """What a recipe scored."""

    results: Results

    @classmethod
    def load(cls, path: Path) -> Sample:
        return cls(Results.load(path))

    @cached_property
    def methods(self) -> list[str]:
        """All methods and controls."""
        return [str(name) for name in self.results.scores["method"].unique()]

    @property
    def contestants(self) -> list[str]:
        """Methods without the controls."""
        return [name for name in self.methods if not self.results.is_control(name)]

    def find(self, start: str) -> str:
        """The label of a method from its beginning: `smoothgrad(method=saliency`."""
        if start in self.methods:
            return start
        found = [name for name in self.methods if name.startswith(start)]
        if len(found) != 1:
            raise UnknownName.among("method in this recipe", start, self.methods)
        return found[0]

    def panel(self, metric: str, model: str | None = None, dataset: str | None = None) -> pd.DataFrame:
        """Pictures × methods of one metric; the model and data set that have it where none is named."""
        return self.results.table(metric, model=model, dataset=dataset).droplevel(["dataset", "model"])

    def groups(self, pictures: pd.Index) -> Groups | None:
        """The groups of these pictures, all but classes taken as sampled."""
        for one in self.results.groups.values():
            if set(pictures) <= set(one.labels.index):
                kinds = {name: _kind(one, name) for name in one.labels.columns}
                return Groups(one.labels, kinds).of(pictures)
        return None

    def of_column(self, what: str, values: pd.Series, *, parts: int = 1, unit: str = "", scale: float = 1) -> Number:
        """The mean of one number per picture. `parts`: how many such numbers share the row's 5 %."""
        known = values.dropna()
        level = 1 - 0.05 / parts
        if known.empty:
            return Number(what, np.nan, np.nan, np.nan, 0, level, unit)
        if not known.any():  # the same on every picture: no resample differs
            return Number(what, 0.0, 0.0, 0.0, len(known), level, unit)
        row = intervals(known.to_frame(what), self.groups(known.index), level).iloc[0]
        mean, low, high = (float(row[name]) * scale for name in ("mean", "low", "high"))
        return Number(what, mean, low, high, len(known), level, unit)

    def mean(self, what: str, table: pd.DataFrame, method: str) -> Number:
        return self.of_column(what, table[self.find(method)])

    def difference(self, what: str, table: pd.DataFrame, first: str, second: str, *, parts: int = 1) -> Number:
        """First minus second, on the pictures that both have."""
        return self.of_column(what, table[self.find(first)] - table[self.find(second)], parts=parts)

    def ratio(self, what: str, first: pd.Series, second: pd.Series) -> Number:
        """100 (mean of the first / mean of the second − 1), by the linearised ratio."""
        both = pd.concat([first, second], axis=1, keys=["first", "second"]).dropna()
        share = float(both["first"].mean() / both["second"].mean())
        residual = (both["first"] - share * both["second"]) / float(both["second"].mean())
        around = self.of_column(what, residual)
        centre = share - 1
        return Number(what, 100 * centre, *(100 * (centre + x) for x in (around.low, around.high)), len(both), unit="%")

    def of_means(self, what: str, table: pd.DataFrame, statistic: Callable[[Floats], float], unit: str = "") -> Number:
        """A statistic of the columns' means, with its percentiles over resampled pictures (whole groups, if there are).

        The percentiles are read as far out as few units ask for. A count of different rankings is larger in resamples
        than in the sample, since resampling adds noise: only differences of such counts are judged by this.
        """
        (found,) = self.several(table, {what: lambda means: statistic(means)}, unit)
        return found

    def several(
        self, table: pd.DataFrame, statistics: dict[str, Callable[[Floats], float]], unit: str = ""
    ) -> list[Number]:
        """Several statistics of the same means over the same resamples."""
        whole = table.dropna()
        groups = self.groups(whole.index)
        clusters: Sequence[NDArray[np.int64]] = list(groups.clusters().values()) if groups is not None else []
        units = min([len(whole), *(int(index.max()) + 1 for index in clusters)])
        drawn = resampled_means(whole.to_numpy(), resamples=RESAMPLES, seed=0, clusters=clusters)
        drawn = drawn[~np.isnan(drawn).any(axis=1)]
        centre = whole.to_numpy().mean(axis=0)
        numbers = []
        for what, statistic in statistics.items():
            low = high = np.nan
            if units >= 5:
                values = np.array([statistic(means) for means in drawn])
                low, high = np.nanquantile(values, expanded_tails(units, 0.95))
            numbers.append(Number(what, statistic(centre), float(low), float(high), len(whole), unit=unit))
        return numbers


def _kind(groups: Groups, name: str) -> Kind:
    """Sampled, but for classes: these are the ones of interest."""
    return groups.kinds[name] if name == CLASS else "sampled"


def intervals(table: pd.DataFrame, groups: Groups | None, level: float) -> pd.DataFrame:
    """`mean_intervals` with as many resamples as so high a level needs."""
    return mean_intervals(table, groups, level=level, resamples=max(BOOTSTRAPS, int(np.ceil(FINE / (1 - level)))))
