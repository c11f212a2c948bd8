"""Decisions on every pair of methods while pictures come in: the pages of successive looks, read as one.

A pair is decided at the first look whose tests separate the two, or whose interval for the pair lies within the margin.
That decision stays, whatever later looks show: each look spends its own share of alpha.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.errors import BadInput
from heatproof.stats.bootstrap_t import RESAMPLES
from heatproof.stats.groups import Groups
from heatproof.stats.looks import share
from heatproof.stats.page import IDENTICAL, Card, Page, PairTests, page_tests

Outcome = Literal["better", "worse", "equivalent", "open"]  # of the first method of a pair
ALIKE = 59  # pictures with equal scores: at 95 % confidence fewer than one picture in twenty is another
FINE = 10  # resamples beyond a critical value, at least: at small levels more are drawn

Key = TypeVar("Key", bound=Hashable)


def look(
    cards: Mapping[Key, Card], groups: Mapping[str, Groups] | None, number: int, *, alpha: float, seed: int = 0
) -> Page[Key]:
    """The tests of one look, at its share of alpha.

    Pictures come in a random order, in which groups have no fixed shares: fixed groups are part of what varies.
    """
    level = alpha * share(number)
    resamples = max(RESAMPLES, int(np.ceil(FINE / level)))
    ordered = dict(sorted(cards.items(), key=lambda item: str(item[0])))  # whoever asks, the same resamples
    return page_tests(ordered, groups, alpha=level, resamples=resamples, seed=seed, stratified=False)


def outcomes(tests: PairTests, margin: float = 0.0) -> NDArray[np.str_]:
    """What one look decides of each of its pairs."""
    frame = tests.frame
    found = np.full(len(frame), "open", dtype="<U10")
    alike = (frame["reason"] == IDENTICAL) & (frame["n"] >= ALIKE)
    found[((frame["low"] > -margin) & (frame["high"] < margin)) | (alike & (margin > 0))] = "equivalent"
    solid = frame["significant"]
    found[solid & (frame["winner"] == frame["method_a"])] = "better"
    found[solid & (frame["winner"] == frame["method_b"])] = "worse"
    return found


def decided(looks: Sequence[Page[Key]], *, alpha: float, margin: float = 0.0) -> Page[Key]:
    """One page of all looks: each pair as the look that decided it has it, else as the last one has it.

    Its p allows for the looks: it is at most alpha exactly where some look separates the pair. The column `outcome`
    says what was decided, and `look` when.
    """
    if not looks:
        raise BadInput("decisions need at least one look.")
    last = looks[-1]
    tests = {
        key: _of_card([page.tests[key] for page in looks if key in page.tests], alpha, margin) for key in last.tests
    }
    return replace(last, tests=tests, alpha=alpha, looks=len(looks), level=last.alpha)


def _of_card(looks: Sequence[PairTests], alpha: float, margin: float) -> PairTests:
    rows: dict[tuple[str, str], pd.Series] = {}
    for number, tests in enumerate(looks, 1):
        frame = tests.frame.assign(outcome=outcomes(tests, margin), look=number)
        for name in ("p", "p_adjusted", "p_beyond"):
            frame[name] = np.minimum(frame[name] * alpha / tests.alpha, 1.0)
        for _, row in frame.iterrows():
            pair = (row["method_a"], row["method_b"])
            before = rows.get(pair)
            if before is None or before["outcome"] == "open":
                rows[pair] = row
    last = looks[-1]
    order = list(zip(last.frame["method_a"], last.frame["method_b"], strict=True))
    merged = pd.DataFrame([rows[pair] for pair in order]).reset_index(drop=True)
    kinds = {**{str(name): kind for name, kind in last.frame.dtypes.items()}, "look": "int64"}
    return replace(last, frame=merged.astype(kinds), alpha=alpha, margin=margin)
