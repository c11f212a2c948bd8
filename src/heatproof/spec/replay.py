"""Replays a stored study elsewhere: finds its files, and compares the new scores with the old."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from heatproof.errors import BadInput
from heatproof.storage import any_path

PARTS = ("datasets", "methods", "metrics")
ROW = ["dataset", "model", "method", "metric", "image"]
FLOAT_NOISE = 1e-5  # in a mean over images; other engine choices differ by no more

# How a recipe or a model's spec may name a file: `/a/b.csv`, `/a/b.py:Name`, `hf:/a/b`, `torchvision:resnet50@/a/b`.
_PLACE = re.compile(r"(?P<lead>(?:[\w.-]+[@:])*)(?P<path>/.*?)(?P<name>(?<=\.py):[\w.<>]+)?")


def found_here(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The stored study with missing files looked up relative to the working directory, as they were when it was run.

    Weights, code and pictures are checked where they are read, so another file of the same name is not mistaken for
    them.
    """
    before = stored.get("folder", "")

    def move(text: str) -> str:
        place = _PLACE.fullmatch(text)
        if not before or place is None or any_path.exists(place["path"]):
            return text
        now = Path(os.path.normpath(Path.cwd() / os.path.relpath(place["path"], before)))
        return f"{place['lead']}{now}{place['name'] or ''}" if any_path.exists(now) else text

    moved: dict[str, Any] = _mapped(stored, move)
    if before and not any_path.is_dir(before):
        moved["folder"] = str(Path.cwd())
    return moved


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Plain data with every text changed, but not its keys."""
    if isinstance(value, dict):
        return {name: _mapped(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def told_anew(studies: Sequence[dict[str, Any]], models: Sequence[str], images: Sequence[str]) -> list[dict[str, Any]]:
    """The stored studies with new paths of models and pictures, given in the stored order."""
    specs = [model["spec"] for study in studies for model in study["models"]]
    paths = [path for study in studies for path in _paths(study["datasets"])]
    model_of = _paired("--model", specs, models)
    path_of = _paired("--images", paths, [str(any_path.expanded(image).absolute()) for image in images])
    return [
        {
            **study,
            "models": [
                {**model, "spec": model_of[model["spec"]], "from": model_of[model["spec"]]} if models else model
                for model in study["models"]
            ],
            **{
                part: _mapped(study[part], lambda text: path_of.get(text, text)) for part in PARTS
            },  # donor images move too
        }
        for study in studies
    ]


def _paths(recipe: Any) -> Iterator[str]:
    """The picture paths of data sets, nested ones included."""
    if isinstance(recipe, list):
        for item in recipe:
            yield from _paths(item)
    elif isinstance(recipe, dict):
        fields = recipe.get("fields", {})
        if not isinstance(fields, dict):
            return
        if "dataset" in recipe and isinstance(fields.get("path"), str) and fields["path"]:
            yield fields["path"]
        yield from _paths(list(fields.values()))


def _paired(option: str, before: Sequence[str], now: Sequence[str]) -> dict[str, str]:
    known = list(dict.fromkeys(before))
    if now and len(now) != len(known):
        raise BadInput(
            f"{option} must give the new path of each of these, in this order: {', '.join(known) or 'none'}; "
            f"{len(known)} wanted, got {len(now)}"
        )
    return dict(zip(known, now, strict=False))


@dataclass(frozen=True)
class Comparison:
    """Two tables of the same scores: the differences, with methods that amplify float noise counted separately."""

    where: Path
    scores: int  # present in both
    same: bool  # every row in both, with the same bits
    largest: float  # difference of a score of a stable method
    largest_mean: float  # difference of a mean over images, of a stable method under one metric
    unstable: Mapping[str, float]  # largest difference of each numerically unstable method
    rest: Sequence[tuple[int, str]] = ()  # rows that could not be compared, and why

    @property
    def holds(self) -> bool:
        """Whether float noise explains every difference of a stable method."""
        return self.largest_mean <= FLOAT_NOISE

    def __str__(self) -> str:
        words = "as in" if self.same else "compared with"
        parts = [f"{self.scores} scores {words} {self.where}, largest difference {self.largest:g}"]
        parts += [f"{count} {what}" for count, what in self.rest if count]
        if self.largest:
            noise = (
                "float noise" if self.holds else f"more than float noise ({FLOAT_NOISE:g}), so something has changed"
            )
            parts.append(f"means over images differ by up to {self.largest_mean:.1g}: {noise}")
        if any(self.unstable.values()):
            apart = ", ".join(f"{method} {gap:.1g}" for method, gap in self.unstable.items())
            parts.append(
                f"numerically unstable, counted apart: {apart} (--engine reference on both sides repeats them)"
            )
        return "; ".join(parts)


def compared(
    before: pd.DataFrame,
    now: pd.DataFrame,
    names: Mapping[str, Mapping[str, str]],
    where: Path,
    unstable: Collection[str] = (),
) -> Comparison:
    """The differences between two tables of scores.

    `names` maps old names of models, data sets and methods to the current ones; `unstable` lists the methods that
    amplify float noise.
    """
    renamed = before.assign(
        **{column: [changed.get(name, name) for name in before[column]] for column, changed in names.items()}
    )
    before, now = renamed.drop_duplicates(ROW), now.drop_duplicates(ROW)  # two studies may ask for the same row
    both = before.merge(now, on=ROW, suffixes=("_before", "_now"))
    both["change"] = (both["value_now"] - both["value_before"]).fillna(0.0)
    wild = both["method"].isin(list(unstable))
    stable = both[~wild]
    means = stable.groupby([column for column in ROW if column != "image"], observed=True)["change"].mean()
    gaps = both[wild].groupby("method", sort=False, observed=True)["change"].agg(_largest)
    one_only = int((both["value_before"].isna() != both["value_now"].isna()).sum())
    whole = len(both) == len(before) == len(now) and not one_only
    rest = [
        (len(before) - len(both), "only there"),
        (len(now) - len(both), "only here"),
        (one_only, "with a number in one of the two only"),
    ]
    return Comparison(
        where,
        scores=len(both),
        same=whole and _largest(both["change"]) == 0,
        largest=_largest(stable["change"]),
        largest_mean=_largest(means),
        unstable={str(method): float(gap) for method, gap in gaps.items()},
        rest=rest,
    )


def _largest(changes: pd.Series[float]) -> float:
    return float(changes.abs().max()) if len(changes) else 0.0
