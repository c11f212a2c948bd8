"""A table of setups x methods, checked strictly: missing, doubled or uneven rows are reported, never dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray, scored

RANDOM = "random"
MEASURED = ("mif", "lif", "r_oms")
DERIVED = ("mrg", "lrg", "srg")  # computed from the measured ones, so these columns are ignored


@dataclass(frozen=True, eq=False)
class Scores:
    """MIF and LIF as (setups, methods) arrays; methods in name order, setups in order of appearance."""

    setups: tuple[dict[str, Any], ...]
    setup_columns: tuple[str, ...]
    methods: tuple[str, ...]
    mif: FloatArray
    lif: FloatArray
    r_oms: FloatArray  # (setups,)


def read_scores(table: pd.DataFrame, random: str = RANDOM) -> Scores:
    """Check and arrange a table with columns `method, mif, lif[, r_oms]`; all other columns are the setup.

    Without an r_oms column, R-OMS of a setup is the MIF of its method called `random`.
    """
    absent = [c for c in ("method", "mif", "lif") if c not in table.columns]
    if absent:
        raise BadInput(
            f"the table must have columns method, mif, lif; it lacks {', '.join(absent)} "
            f"(it has {', '.join(map(str, table.columns)) or 'none'})."
        )
    if table.empty:
        raise BadInput("the table must have one row per setup and method, got none.")
    setup_columns = [str(c) for c in table.columns if c not in ("method", *MEASURED, *DERIVED)]
    if not setup_columns:
        raise BadInput("the table needs at least one column that names the setup, such as model or imputer.")
    rows = table.reset_index(drop=True)
    _no_holes(rows, setup_columns)
    rows["method"] = rows["method"].astype(str)
    _no_doubles(rows, setup_columns)
    setups = rows[setup_columns].drop_duplicates().reset_index(drop=True)
    methods = tuple(sorted(rows["method"].unique()))
    _same_methods(rows, setup_columns, methods)
    square = {m: _arrange(rows, setups, setup_columns, methods, m) for m in MEASURED if m in rows.columns}
    r_oms = _r_oms(square, setups, methods, random)
    records = tuple({str(k): _plain(v) for k, v in row.items()} for row in setups.to_dict("records"))
    return Scores(records, tuple(setup_columns), methods, square["mif"], square["lif"], r_oms)


def _no_holes(rows: pd.DataFrame, setup_columns: list[str]) -> None:
    for column in ("method", *setup_columns):
        lines = rows.index[rows[column].isna()]
        if len(lines):
            raise BadInput(f"column {column} is empty in {_some(f'row {i + 1}' for i in lines)}: fill or remove them.")
    for column in (m for m in MEASURED if m in rows.columns):
        numbers = pd.to_numeric(rows[column], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        holes = rows.loc[~np.isfinite(numbers)]
        if len(holes):
            where = _some(f"{row['method']} in {_name(row, setup_columns)}" for row in holes.to_dict("records"))
            raise BadInput(f"{column} must be a number everywhere; it is missing for {where}: measure or remove them.")
        scored(numbers, column)


def _no_doubles(rows: pd.DataFrame, setup_columns: list[str]) -> None:
    doubled = rows.loc[rows.duplicated([*setup_columns, "method"])].drop_duplicates([*setup_columns, "method"])
    if len(doubled):
        where = _some(f"{row['method']} in {_name(row, setup_columns)}" for row in doubled.to_dict("records"))
        raise BadInput(f"there must be one row per setup and method; several exist for {where}.")


def _same_methods(rows: pd.DataFrame, setup_columns: list[str], methods: tuple[str, ...]) -> None:
    lacking = []
    for _, group in rows.groupby(setup_columns, sort=False):
        gone = sorted(set(methods) - set(group["method"]))
        if gone:
            lacking.append(f"{_name(group.iloc[0].to_dict(), setup_columns)} lacks {', '.join(gone)}")
    if lacking:
        loners = [c for c in setup_columns if len(rows) > 1 and rows[c].is_unique]
        hint = f" Column {loners[0]} differs in every row: if it is no part of the setup, remove it." if loners else ""
        raise BadInput(f"all setups must have the same methods, but {_some(lacking, '; ')}.{hint}")


def _arrange(
    rows: pd.DataFrame, setups: pd.DataFrame, setup_columns: list[str], methods: tuple[str, ...], measure: str
) -> FloatArray:
    numbered = rows.merge(setups.assign(_setup=range(len(setups))), on=setup_columns, how="left")
    square = np.full((len(setups), len(methods)), np.nan)
    column = [methods.index(m) for m in numbered["method"]]
    square[numbered["_setup"].to_numpy(), column] = pd.to_numeric(numbered[measure]).to_numpy(dtype=np.float64)
    return square


def _r_oms(square: dict[str, FloatArray], setups: pd.DataFrame, methods: tuple[str, ...], random: str) -> FloatArray:
    if "r_oms" in square:
        values = square["r_oms"]
        uneven = np.flatnonzero(np.ptp(values, axis=1) > 1e-9)
        if len(uneven):
            records = setups.to_dict("records")
            where = _some(_name({str(k): v for k, v in records[i].items()}, list(setups.columns)) for i in uneven)
            raise BadInput(f"r_oms belongs to the setup and must be equal for all its methods; it differs in {where}.")
        return np.asarray(values[:, 0], dtype=np.float64)
    if random not in methods:
        raise BadInput(f"R-OMS is unknown: add a column r_oms, or rows of a method called {random!r}.")
    return np.asarray(square["mif"][:, methods.index(random)], dtype=np.float64)


def _name(row: dict[Any, Any], setup_columns: list[str]) -> str:
    return "(" + ", ".join(f"{c}={row[c]}" for c in setup_columns) + ")"


def _some(items: Iterable[str], separator: str = ", ", most: int = 8) -> str:
    named = list(items)
    more = f"{separator}and {len(named) - most} more" if len(named) > most else ""
    return separator.join(named[:most]) + more


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
