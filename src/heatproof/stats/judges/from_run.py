"""Evidence on metrics that were on trial within a run, from the rows of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heatproof.stats.bootstrap import FloatArray
from heatproof.stats.judges.evidence import Evidence, Passes, Shown
from heatproof.stats.judges.on_trial_names import AGAIN, MAP, NEAR, SETTING
from heatproof.traits import Measures


@dataclass(frozen=True)
class TrialRows:
    """What a run has on one metric, on one data set and model."""

    metric: str
    measures: Measures
    chance: float | None
    higher_is_better: bool
    shown: tuple[Shown, ...]  # maps of known quality and blind ones
    settings: tuple[str, ...]
    passes: tuple[float, float, float] | None  # declared
    truth: str  # method
    real: tuple[str, ...]  # methods
    forms: Mapping[str, str]  # method under another setting -> the method
    scores: pd.DataFrame  # pictures × methods
    details: pd.DataFrame  # method, image, detail, value
    seconds: float


def evidence_of(rows: TrialRows) -> Evidence | None:
    """The evidence, on the pictures whose maps of known quality were judged; None without any."""
    of_truth = _wide(rows.details, rows.truth)
    pictures = of_truth.index
    real = [one for one in rows.real if one in rows.scores.columns]
    if not len(pictures) or not real:
        return None
    sign = 1.0 if rows.higher_is_better else -1.0
    further = {method: _wide(rows.details, method) for method in real}
    forms = {form: method for form, method in rows.forms.items() if form in rows.scores.columns and method in real}
    own = [_column(rows.scores, method, pictures) for method in (*real, *forms)]
    graded = [_column(of_truth, f"{MAP}{one.name}", pictures) for one in rows.shown]
    near = [_column(of_truth, f"{NEAR}{one.name}", pictures) for one in rows.shown]
    named = [Shown(one, "real") for one in real] + [Shown(one, "variant", 0.0, of) for one, of in forms.items()]
    here = np.stack(own[: len(real)])
    again = np.stack([_column(further[one], AGAIN, pictures) for one in real])
    settings = {
        name: sign * np.stack([_column(further[one], f"{SETTING}{name}", pictures) for one in real])
        for name in rows.settings
    }
    nan = float("nan")
    return Evidence(
        metric=rows.metric,
        measures=rows.measures,
        chance=rows.chance,
        higher_is_better=rows.higher_is_better,
        shown=(*rows.shown, *named),
        scores=sign * np.stack([*graded, *own]),
        closeness=np.stack([*near, *(np.zeros(len(pictures)) for _ in own)]),
        retest=sign * np.stack([here, again]),
        settings=settings,
        trials=(),
        passes=Passes(*rows.passes) if rows.passes else Passes(nan, nan, nan),
        seconds=rows.seconds,
    )


def _wide(details: pd.DataFrame, method: str) -> pd.DataFrame:
    """Pictures × further numbers of one method."""
    found = details[details["method"] == method]
    return found.pivot_table(index="image", columns="detail", values="value", sort=False, observed=True)


def _column(table: pd.DataFrame, name: str, pictures: pd.Index) -> FloatArray:
    """A column for these pictures, NaN where it has nothing."""
    if name not in table.columns:
        return np.full(len(pictures), np.nan)
    return np.asarray(table[name].reindex(pictures), dtype=np.float64)
