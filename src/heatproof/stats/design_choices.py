"""What moves R-OMS: how far each design choice of an occlusion strategy does, with all others fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Choice:
    """One design choice (imputer, model, …), and the ranges of a number over its settings.

    There is one range for every setting of the other choices in which this one varies.
    """

    name: str
    settings: tuple[str, ...]
    ranges: tuple[float, ...]  # max − min, one per setting of the other choices

    @property
    def mean(self) -> float:
        return float(np.mean(self.ranges))

    @property
    def largest(self) -> float:
        return max(self.ranges)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The middle half of the ranges."""
        low, high = np.quantile(self.ranges, [0.25, 0.75])
        return float(low), float(high)


def design_choices(setups: pd.DataFrame, names: Sequence[str], value: str) -> list[Choice]:
    """The choices that vary, the one that moves the value most first. `setups` has one row per setup."""
    known = setups.dropna(subset=[value])
    found = []
    for name in names:
        others = [other for other in names if other != name]
        groups = [part[value] for _, part in known.groupby(others, sort=False) if part[name].nunique() > 1]
        if groups:
            settings = tuple(str(one) for one in known[name].unique())
            found.append(Choice(name, settings, tuple(float(part.max() - part.min()) for part in groups)))
    return sorted(found, key=lambda choice: -choice.mean)
