"""From a run's scores to a table of setups: one row per data set, model, occlusion strategy and method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

MEASURES = ("mif", "lif", "r_oms")
PLACE = ("dataset", "model", "imputer", "n_superpixels")


def strategies_of(studies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The occlusion strategies that a run's pixel-flipping studies noted: the setup, and its metrics' labels."""
    noted = [one for study in studies for one in study.get("notes", {}).get("setups", ())]
    return [one for at, one in enumerate(noted) if one not in noted[:at]]


def setups_table(scores: pd.DataFrame, strategies: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Columns dataset, model, imputer, n_superpixels, method, mif, lif, r_oms: means over images, NaN for none.

    Only images that every scored method of a strategy was scored on count, so that methods are compared on the
    same pictures.
    """
    ok = scores.loc[scores["status"] == "ok"]
    rows = []
    for strategy in strategies:
        parts = {name: _wide(ok, str(strategy[name])) for name in MEASURES if name in strategy}
        for place in parts["mif"]:
            if any(place not in part for part in parts.values()):
                continue
            shared = pd.concat({name: part[place] for name, part in parts.items()}, axis=1).dropna()
            means = shared.mean()
            setup = dict(zip(PLACE, (*place, strategy["imputer"], strategy["n_superpixels"]), strict=True))
            for method in parts["mif"][place].columns:
                told = {name: means.get((name, method), float("nan")) for name in parts}
                rows.append({**setup, "method": method, **told})
    return pd.DataFrame(rows, columns=[*PLACE, "method", *MEASURES])


def without_holes(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table of the methods that every setup has numbers for, and the names of the others."""
    setups = len(table[list(PLACE)].drop_duplicates())
    counts = table.dropna(subset=["mif", "lif"]).groupby("method").size()
    others = [str(method) for method in table["method"].unique() if counts.get(method, 0) < setups]
    return table.loc[~table["method"].isin(others)].reset_index(drop=True), others


def _wide(ok: pd.DataFrame, label: str) -> dict[tuple[str, str], pd.DataFrame]:
    """(dataset, model) -> images × methods of one metric."""
    found = {}
    for (dataset, model), part in ok.loc[ok["metric"] == label].groupby(["dataset", "model"], observed=True):
        values = part.drop_duplicates(["image", "method"], keep="last")
        table = values.set_index(["image", "method"])["value"].astype(float).unstack("method")
        table.columns = [str(column) for column in table.columns]
        found[str(dataset), str(model)] = table
    return found
