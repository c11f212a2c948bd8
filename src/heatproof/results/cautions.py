"""Cautions in words: what these results cannot carry, whatever they seem to say."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from heatproof.results.run_info import RunInfo

FEW = 10  # pictures below which tests find little


def cautions(scores: pd.DataFrame, info: RunInfo) -> list[str]:
    """Too few pictures, and metrics under which nothing differs; for the terminal and the report."""
    return [*_few(scores), *_equal(scores, info)]


def _few(scores: pd.DataFrame) -> Iterator[str]:
    for (dataset, model), part in scores.groupby(["dataset", "model"], sort=False, observed=True):
        count = part["image"].nunique()
        if count < FEW:
            yield (
                f"{count} picture{'' if count == 1 else 's'} of {dataset} under {model}: so few show only very large "
                "differences, and a difference that is not found may still be there. Take 20 or more."
            )


def _equal(scores: pd.DataFrame, info: RunInfo) -> Iterator[str]:
    controls = [method for method in scores["method"].unique() if info.method(method).control]
    own = scores[~scores["method"].isin(controls) & scores["value"].notna()]
    for (metric, dataset, model), part in own.groupby(["metric", "dataset", "model"], sort=False, observed=True):
        if info.metric(str(metric)).ranks and part["method"].nunique() > 1 and part["value"].nunique() == 1:
            yield (
                f"All scores under {metric} ({model} on {dataset}) are {part['value'].iloc[0]:.3g}: it tells nothing "
                "apart here. Does the model's answer depend on the picture, and do the maps differ?"
            )
