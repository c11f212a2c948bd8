"""From a run's scores to a table of setups: one row per data set, model, occlusion strategy and method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

from heatproof.stats.setups import RANDOM

MEASURES = ("mif", "lif", "r_oms")
# What fills hidden parts, how much is hidden at once, and what else distinguishes a strategy.
STRATEGY = ("imputer", "n_superpixels", "variant")
PLACE = ("dataset", "model", *STRATEGY)


@dataclass(frozen=True)
class Strategy:
    """An occlusion strategy, and under which label each of its metrics is stored."""

    imputer: str
    n_superpixels: int
    variant: str = ""  # what distinguishes it from another with the same imputer on as many segments
    mif: str | None = None
    lif: str | None = None
    srg: str | None = None
    r_oms: str | None = None
    nr_oms: str | None = None
    asked: str = ""  # the variant, in runs of earlier versions

    @property
    def name(self) -> tuple[str, int, str]:
        return self.imputer, self.n_superpixels, self.variant

    def label(self, measure: str) -> str | None:
        """The label of a measure's metric, if it was judged."""
        return {"mif": self.mif, "lif": self.lif, "r_oms": self.r_oms}[measure]


def distinguished(strategies: Iterable[Strategy]) -> list[Strategy]:
    """Each strategy once. Those with equal names get the label of their MIF metric, which differs, as `variant`."""
    found = list(dict.fromkeys(replace(one, variant=one.variant or one.asked, asked="") for one in strategies))
    names = Counter(one.name for one in found)
    return [one if names[one.name] == 1 else replace(one, variant=one.mif or "") for one in found]


def strategy_name(imputer: object, n_superpixels: object, variant: object) -> str:
    """`telea on 25 superpixels`, with what else distinguishes the strategy."""
    return f"{imputer} on {n_superpixels} superpixels" + (f", {variant}" if variant else "")


def setups_table(scores: pd.DataFrame, strategies: Sequence[Strategy]) -> pd.DataFrame:
    """Columns dataset, model, imputer, n_superpixels, variant, method, mif, lif, r_oms: means over images, or NaN.

    Only images that every scored method of a strategy was scored on count, so that methods are compared on the
    same pictures.
    """
    ok = scores.loc[scores["status"] == "ok"]
    rows = []
    for strategy in strategies:
        parts = _parts(ok, strategy)
        for place in dict.fromkeys(place for part in parts.values() for place in part):
            means = _shared(parts, place).mean()
            setup = dict(zip(PLACE, (*place, *strategy.name), strict=True))
            methods = dict.fromkeys(method for part in parts.values() if place in part for method in part[place])
            for method in methods:
                values = {name: means.get((name, method), float("nan")) for name in MEASURES}
                rows.append({**setup, "method": method, **values})
    return pd.DataFrame(rows, columns=[*PLACE, "method", *MEASURES])


def gains(scores: pd.DataFrame, strategy: Strategy, dataset: str, model: str) -> dict[str, pd.DataFrame]:
    """SRG = LIF - MIF, MRG = R-OMS - MIF and LRG = LIF - R-OMS under one strategy, each images × methods.

    They are of the images that `setups_table` takes means of, and each is there only if its two parts are.
    """
    shared = _shared(_parts(scores.loc[scores["status"] == "ok"], strategy), (dataset, model))
    known = set(shared.columns.get_level_values(0))
    differences = {"srg": ("lif", "mif"), "mrg": ("r_oms", "mif"), "lrg": ("lif", "r_oms")}
    return {
        name: pd.DataFrame(shared[more] - shared[less]).dropna(axis=1)
        for name, (more, less) in differences.items()
        if {more, less} <= known
    }


class Whole(NamedTuple):
    """A table without holes, and what was left out: setups in which no method has all numbers, and methods that lack
    numbers in some other setup.
    """

    table: pd.DataFrame
    setups: list[str]
    methods: list[str]


def without_holes(table: pd.DataFrame) -> Whole:
    """Only setups and methods that can be compared."""
    marked = table.assign(known=table[list(MEASURES)].notna().all(axis=1))
    scored = marked.groupby(list(PLACE), sort=False)["known"].any()
    empty: list[Any] = [setup for setup, known in scored.items() if not known]
    kept = marked.loc[~marked.set_index(list(PLACE)).index.isin(empty)]
    counts = kept.loc[kept["known"]].groupby("method").size()
    others = [str(method) for method in table["method"].unique() if counts.get(method, 0) < len(scored) - len(empty)]
    whole = kept.loc[~kept["method"].isin(others), list(table.columns)].reset_index(drop=True)
    named = [f"{strategy_name(*setup[2:])} ({setup[1]} on {setup[0]})" for setup in empty]
    return Whole(whole, named, others)


def compared(table: pd.DataFrame, is_control: Callable[[str], bool]) -> pd.DataFrame:
    """The rows of methods and of the random control: the other controls are no part of the rankings compared."""
    names = [str(name) for name in table["method"].unique()]
    random = random_among(names)
    return table[table["method"].isin([name for name in names if name == random or not is_control(name)])]


def random_among(methods: Iterable[str]) -> str:
    """The label of the random control, whatever its settings."""
    return next((name for name in methods if name.partition("(")[0] == RANDOM), RANDOM)


def _parts(ok: pd.DataFrame, strategy: Strategy) -> dict[str, dict[tuple[str, str], pd.DataFrame]]:
    return {name: _wide(ok, label) for name in MEASURES if (label := strategy.label(name)) is not None}


def _shared(parts: Mapping[str, Mapping[tuple[str, str], pd.DataFrame]], place: tuple[str, str]) -> pd.DataFrame:
    """Images × (measure, method): the images with a score of every method."""
    here = {name: part[place] for name, part in parts.items() if place in part}
    return pd.concat(here, axis=1).dropna() if here else pd.DataFrame(columns=pd.MultiIndex.from_arrays([[], []]))


def _wide(ok: pd.DataFrame, label: str) -> dict[tuple[str, str], pd.DataFrame]:
    """(dataset, model) -> images × methods of one metric."""
    found = {}
    for (dataset, model), part in ok.loc[ok["metric"] == label].groupby(["dataset", "model"], observed=True):
        values = part.drop_duplicates(["image", "method"], keep="last")
        table = values.set_index(["image", "method"])["value"].astype(float).unstack("method")
        table.columns = [str(column) for column in table.columns]
        found[str(dataset), str(model)] = table
    return found
