"""Checks before the work starts: studies that cannot succeed, or cannot be replayed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from heatproof.errors import BadInput, NotApplicable
from heatproof.run.shards import Shard
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import metric_traits
from heatproof.types import Attribution


def check_regions(work: Sequence[Shard]) -> None:
    """Refuse a study of localisation metrics on pictures without regions: at once, not after hours."""
    for one in dict.fromkeys(shard.study for shard in work):
        located = [metric for metric in one.metrics if metric_traits(metric).measures != "pictures"]
        if not located or any("regions" not in metric_traits(metric).needs for metric in located):
            continue
        first = {recipe.label(shard.dataset): shard for shard in reversed(work) if shard.study is one}
        reasons = [_no_regions(shard, located[0]) for shard in first.values()]
        if reasons and all(reasons):
            raise BadInput(f"{reasons[0]} (--masks FOLDER, or a column 'mask' in a table)")


def _no_regions(shard: Shard, metric: Any) -> str:
    """The reason why a metric has no score for a picture without a region; empty where there is one."""
    batch = shard.dataset.batch(shard.indices[:1])
    if batch.regions is not None or not len(batch):
        return ""
    try:
        metric(Attribution(shard.model, batch, None, torch.zeros_like(batch.images[:, 0])))  # type: ignore[arg-type]
    except NotApplicable as reason:
        return str(reason)
    except Exception:  # it becomes the reason of every row
        return ""
    return ""


def warn_of_lost(studies: Sequence[Study]) -> None:
    """Warn of parts that a replay cannot find again: those without a name, unless a study file makes them."""
    parts = [part for one in studies if not one.file for part in (*one.methods, *one.metrics, *one.datasets)]
    names = dict.fromkeys(recipe.label(part) for part in parts if any(True for _ in recipe.lost(part)))
    if names:
        warnings.warn(
            f"study.json will not find {', '.join(names)} again (a lambda, a function made by another one, or an "
            "object made in Python): to replay it run this script again, or write it as a frozen dataclass or as a "
            "function at the top of a file",
            stacklevel=3,
        )
