"""What the choice of a strategy moves: R-OMS, the agreement of rankings, and the gain of every method."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from heatproof.report.charts import Spread, small_multiples, strips
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import fold
from heatproof.report.sections.blocks import table as set_table
from heatproof.report.typeset import MISSING, escape, number
from heatproof.stats.consistency import MEASURES, Consistency
from heatproof.stats.design_choices import Choice, design_choices
from heatproof.stats.ndcg import correlation
from heatproof.stats.strategies import PLACE, Strategy

WORDS = {"dataset": "data", "n_superpixels": "superpixels", "variant": "other settings", "r_oms": "R-OMS"}
GAINS = {"srg": "SRG", "mrg": "MRG", "lrg": "LRG"}


def strategy_choices(reading: Reading, found: Consistency, whole: pd.DataFrame, strategies: list[Strategy]) -> str:
    """Three folds: what R-OMS depends on, what agreement goes with, and how gains spread over strategies."""
    setups = whole.drop_duplicates(list(PLACE)).reset_index(drop=True)
    nr_oms = [_nr_oms(reading.scores, strategies, setup) for setup in setups.to_dict("records")]
    return (
        _moved(design_choices(setups, PLACE, "r_oms"))
        + _goes_with(found, nr_oms)
        + fold("How each method’s gain spreads over strategies", _boxes(reading, whole))
    )


def _moved(choices: Sequence[Choice]) -> str:
    """The ranges of R-OMS by design choice."""
    if not choices:
        return ""
    rows = [
        [
            WORDS.get(one.name, one.name),
            str(len(one.settings)),
            str(len(one.ranges)),
            one.mean,
            f"{number(one.quartiles[0])} to {number(one.quartiles[1])}",
            one.largest,
        ]
        for one in choices
    ]
    head = ("choice", "settings", "ranges", "mean range of R-OMS", "middle half", "largest")
    note = "<p>R-OMS at the best setting of a choice minus that at the worst, with all other choices fixed.</p>"
    return fold(f"What moves R-OMS most: {WORDS.get(choices[0].name, choices[0].name)}", note + set_table(head, rows))


def _goes_with(found: Consistency, nr_oms: list[float]) -> str:
    """Spearman's correlation of nDCG with the properties of setups, beside what chance gives."""
    if found.n_setups < 3:
        return ""
    rows: list[list[Any]] = []
    for name, association in found.ndcg_vs.items():
        if len({str(setup.get(name)) for setup in found.setups}) == 1 and name in found.setup_columns:
            continue  # it does not vary, so that nothing can go with it
        words = WORDS.get(name, name) + (", best order" if association.optimistic else "")
        rows.append([words, *(_known(association.rho[measure]) for measure in MEASURES)])
    if all(math.isfinite(value) for value in nr_oms):
        others = np.array(nr_oms)
        quality = {measure: np.array(found.rankings[measure].ndcg) for measure in MEASURES}
        rhos = [_known(correlation(quality[measure], others, "spearman")) for measure in MEASURES]
        rows.insert(1, ["NR-OMS", *rhos])
    chance = 1 / math.sqrt(found.n_setups - 1)
    note = (
        "<p>Spearman’s correlation, over setups, of how near a setup’s ranking is to the most frequent one (nDCG) with "
        f"a property of the setup. One that has nothing to do with it gives 0 ± {number(chance, 2)}. Of imputers and "
        "models the order that correlates most was taken, so theirs is too large.</p>"
    )
    head = ("property", *(measure.upper() for measure in MEASURES))
    return fold("What goes with a ranking that is off", note + set_table(head, rows))


def _known(rho: float) -> float | str:
    return MISSING if math.isnan(rho) else rho


def _nr_oms(scores: pd.DataFrame, strategies: list[Strategy], setup: Mapping[Hashable, Any]) -> float:
    """The mean NR-OMS of one setup; NaN where it was not measured."""
    name = tuple(setup[part] for part in ("imputer", "n_superpixels", "variant"))
    label = next((one.nr_oms for one in strategies if one.name == name), None)
    here = (scores["dataset"] == setup["dataset"]) & (scores["model"] == setup["model"])
    return float(scores.loc[here & (scores["metric"] == label), "value"].mean()) if label else math.nan


def _boxes(reading: Reading, whole: pd.DataFrame) -> str:
    """Per gain, one violin per method over all strategies, on one axis."""
    gains = whole.assign(
        srg=whole["lif"] - whole["mif"], mrg=whole["r_oms"] - whole["mif"], lrg=whole["lif"] - whole["r_oms"]
    )
    order = gains.groupby("method")["srg"].median().sort_values(ascending=False).index
    shown = gains[list(GAINS)].to_numpy().ravel()
    charts = []
    for gain, name in GAINS.items():
        spreads = [
            Spread(
                str(method),
                gains.loc[gains["method"] == method, gain].tolist(),
                reading.colours.get(str(method)),
                reading.is_control(str(method)),
            )
            for method in order
        ]
        title = f"{name} of each method over strategies"
        charts.append((escape(name), strips(spreads, title=title, reference=0.0, within=(shown.min(), shown.max()))))
    return small_multiples(charts)
