"""Explaining and judging with the same imputer: Shapley values of each imputer under strategies of every imputer."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import fold
from heatproof.report.sections.blocks import table as set_table
from heatproof.report.typeset import number
from heatproof.results.protocol_notes import PixelFlippingNotes

LEAST = 2  # imputers


def matching_imputers(reading: Reading, whole: pd.DataFrame) -> str:
    """Mean SRG, explaining imputers down and judging ones across; empty if the run did not match them."""
    noted = (study.noted(PixelFlippingNotes).matching for study in reading.info.of_protocol("pixel_flipping"))
    explaining = {label: name for found in noted for label, name in found.items()}
    table = matrix(whole, explaining)
    if len(table) < LEAST or len(table.columns) < LEAST:
        return ""
    shared = [name for name in table.index if name in table.columns]
    own, other = matched(table)
    rows = [[str(name), *(float(value) for value in table.loc[name])] for name in table.index]
    words = (
        "<p>Mean SRG of Shapley values that hide parts with one imputer (rows), judged by strategies with each imputer "
        f"(columns). With the same on both sides it is {number(own)} on average, with another {number(other)}: "
        "a higher diagonal says that a judge favours maps made with its own paint.</p>"
    )
    if len(shared) < LEAST or math.isnan(own) or math.isnan(other):
        words = "<p>Mean SRG of Shapley values that hide parts with one imputer (rows), judged by each (columns).</p>"
    return fold(
        "Explaining and judging with the same imputer", words + set_table(("explained with", *table.columns), rows)
    )


def matrix(setups: pd.DataFrame, explaining: dict[str, str]) -> pd.DataFrame:
    """Explaining × judging imputers: mean SRG over all other choices."""
    rows = setups[setups["method"].isin(list(explaining))]
    rows = rows.assign(explained=rows["method"].map(explaining), srg=rows["lif"] - rows["mif"])
    return rows.pivot_table(index="explained", columns="imputer", values="srg", aggfunc="mean", sort=False)


def matched(table: pd.DataFrame) -> tuple[float, float]:
    """The mean of the cells in which both are the same, and of the other cells of these imputers."""
    shared = [name for name in table.index if name in table.columns]
    square = table.loc[shared, shared].to_numpy(dtype=float)
    same = np.eye(len(shared), dtype=bool)
    if not len(shared) or square.size == same.sum():
        return (float(square[same].mean()) if len(shared) else math.nan), math.nan
    return float(square[same].mean()), float(square[~same].mean())
