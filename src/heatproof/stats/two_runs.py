"""What moved between two runs: every method under every metric, paired where the pictures are the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
import pandas as pd
from scipy import stats

from heatproof.stats.bootstrap_t import FEWEST
from heatproof.stats.groups import Groups
from heatproof.stats.page import ALPHA, Card, page_tests
from heatproof.stats.significance import holm

Key = TypeVar("Key", bound=Hashable)
Basis = Literal["paired", "unpaired"]
Outcome = Literal["up", "down", "same", "noise", "few"]

FIRST, SECOND = "first", "second"


@dataclass(frozen=True)
class Move(Generic[Key]):
    """One cell of two runs: means, second − first with an interval that holds for all cells at once, and p likewise.

    `same`: every score is equal. `noise`: the tests do not separate the runs. `few`: too few pictures to test. `paired`
    is of the pictures that both runs scored, `unpaired` of different pictures.
    """

    key: Key
    basis: Basis
    n: tuple[int, int]
    means: tuple[float, float]
    difference: float
    low: float
    high: float
    p: float
    outcome: Outcome


@dataclass(frozen=True, eq=False)
class Cell:
    """The scores of one method under one metric in both runs, by picture."""

    first: pd.Series[float]
    second: pd.Series[float]
    population: str = ""


def moves(
    cells: Mapping[Key, Cell], groups: Mapping[str, Groups] | None = None, *, alpha: float = ALPHA
) -> list[Move[Key]]:
    """Every cell tested; the chance of any wrong `up` or `down` is at most alpha over all cells together.

    Cells that share at least five pictures are paired, by the tests of a report's page; others by Welch's t with
    Holm's adjustment. If there are both, each kind has half of alpha.
    """
    shared = {key: _shared(cell) for key, cell in cells.items()}
    paired = {key for key, table in shared.items() if len(table) >= FEWEST or len(table) == _fewer(cells[key])}
    paired = {key for key in paired if len(shared[key])}
    level = alpha / 2 if 0 < len(paired) < len(cells) else alpha
    found = _paired({key: shared[key] for key in cells if key in paired}, cells, groups or {}, level)
    found |= _unpaired({key: cell for key, cell in cells.items() if key not in paired}, level)
    return [found[key] for key in cells]


def _shared(cell: Cell) -> pd.DataFrame:
    return pd.DataFrame({FIRST: cell.first, SECOND: cell.second}).dropna()


def _fewer(cell: Cell) -> int:
    return min(int(cell.first.notna().sum()), int(cell.second.notna().sum()))


def _paired(
    tables: Mapping[Key, pd.DataFrame], cells: Mapping[Key, Cell], groups: Mapping[str, Groups], alpha: float
) -> dict[Key, Move[Key]]:
    moved = {key: table for key, table in tables.items() if not (table[FIRST] == table[SECOND]).all()}
    cards = {key: Card(table, population=cells[key].population) for key, table in moved.items()}
    tests = page_tests(cards, groups, alpha=alpha).tests if cards else {}
    found: dict[Key, Move[Key]] = {}
    for key, table in tables.items():
        n, means = (len(table), len(table)), (float(table[FIRST].mean()), float(table[SECOND].mean()))
        if key not in tests:
            found[key] = Move(key, "paired", n, means, 0.0, 0.0, 0.0, 1.0, "same")
            continue
        row = tests[key].frame.iloc[0]
        gap = -float(row["mean_difference"])  # a page has first − second
        outcome: Outcome = "few" if row["reason"] else "noise"
        if row["significant"]:
            outcome = "up" if gap > 0 else "down"
        low, high, p = -float(row["high"]), -float(row["low"]), float(row["p_adjusted"])
        found[key] = Move(key, "paired", n, means, gap, low, high, p, outcome)
    return found


def _unpaired(cells: Mapping[Key, Cell], alpha: float) -> dict[Key, Move[Key]]:
    samples = {key: (cell.first.dropna().to_numpy(), cell.second.dropna().to_numpy()) for key, cell in cells.items()}
    able = [
        key for key, (a, b) in samples.items() if min(len(a), len(b)) >= FEWEST and (np.ptp(a) > 0 or np.ptp(b) > 0)
    ]
    tests = {key: stats.ttest_ind(samples[key][1], samples[key][0], equal_var=False) for key in able}
    adjusted = dict(zip(able, holm([float(tests[key].pvalue) for key in able]), strict=True)) if able else {}
    found: dict[Key, Move[Key]] = {}
    for key, (a, b) in samples.items():
        nothing = float("nan")
        means = (float(a.mean()) if len(a) else nothing, float(b.mean()) if len(b) else nothing)
        gap = means[1] - means[0]
        if key not in tests:
            found[key] = Move(key, "unpaired", (len(a), len(b)), means, gap, nothing, nothing, 1.0, "few")
            continue
        low, high = tests[key].confidence_interval(1 - alpha / len(able))  # Bonferroni: it holds for all at once
        solid = adjusted[key] <= alpha
        outcome: Outcome = ("up" if gap > 0 else "down") if solid else "noise"
        p = float(adjusted[key])
        found[key] = Move(key, "unpaired", (len(a), len(b)), means, gap, float(low), float(high), p, outcome)
    return found
