"""A stored study in another place: where its files are now, and whether its numbers are the same again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from heatproof.errors import BadInput

PARTS = ("datasets", "methods", "metrics")
ROW = ["dataset", "model", "method", "metric", "image"]

# What a recipe or a model's spec may say of a file: `/a/b.csv`, `/a/b.py:Name`, `hf:/a/b`, `torchvision:resnet50@/a/b`.
_PLACE = re.compile(r"(?P<lead>(?:[\w.-]+[@:])*)(?P<path>/.*?)(?P<name>(?<=\.py):[\w.<>]+)?")


def found_here(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The stored study with what is gone looked for from the working directory, as it was from the one it was run in.

    Weights, code and pictures are checked where they are read: files of the same name do not pass for others.
    """
    before = stored.get("folder", "")

    def move(text: str) -> str:
        place = _PLACE.fullmatch(text)
        if not before or place is None or Path(place["path"]).exists():
            return text
        now = Path(os.path.normpath(Path.cwd() / os.path.relpath(place["path"], before)))
        return f"{place['lead']}{now}{place['name'] or ''}" if now.exists() else text

    moved: dict[str, Any] = _mapped(stored, move)
    if before and not Path(before).is_dir():
        moved["folder"] = str(Path.cwd())
    return moved


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Plain data with every text changed, but not the names of fields."""
    if isinstance(value, dict):
        return {name: _mapped(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def told_anew(studies: Sequence[dict[str, Any]], models: Sequence[str], images: Sequence[str]) -> list[dict[str, Any]]:
    """The stored studies with other places for their models and pictures, each in the order they are stored in."""
    specs = [model["spec"] for study in studies for model in study["models"]]
    paths = [path for study in studies for path in _paths(study["datasets"])]
    model_of = _paired("--model", specs, models)
    path_of = _paired("--images", paths, [str(Path(one).expanduser().absolute()) for one in images])
    return [
        {
            **study,
            "models": [
                {**one, "spec": model_of[one["spec"]], "from": model_of[one["spec"]]} if models else one
                for one in study["models"]
            ],
            **{part: _mapped(study[part], lambda text: path_of.get(text, text)) for part in PARTS},  # donors move too
        }
        for study in studies
    ]


def _paths(recipe: Any) -> Iterator[str]:
    """Where the pictures of data sets are, those within others too."""
    if isinstance(recipe, list):
        for item in recipe:
            yield from _paths(item)
    elif isinstance(recipe, dict):
        fields = recipe.get("fields", {})
        if "dataset" in recipe and fields.get("path"):
            yield fields["path"]
        yield from _paths(list(fields.values()))


def _paired(option: str, before: Sequence[str], now: Sequence[str]) -> dict[str, str]:
    known = list(dict.fromkeys(before))
    if now and len(now) != len(known):
        raise BadInput(
            f"{option} must say where each of these is now, in this order: {', '.join(known) or 'none'}; "
            f"that is {len(known)} times, got {len(now)}"
        )
    return dict(zip(known, now, strict=False))


def compared(before: pd.DataFrame, now: pd.DataFrame, names: Mapping[str, Mapping[str, str]], where: Path) -> str:
    """How far two tables of scores are apart, in a sentence; `names` says what models and data sets are called now."""
    renamed = before.assign(
        **{column: [changed.get(name, name) for name in before[column]] for column, changed in names.items()}
    )
    before, now = renamed.drop_duplicates(ROW), now.drop_duplicates(ROW)  # two studies may ask for the same row
    both = before.merge(now, on=ROW, suffixes=("_before", "_now"))
    apart = (both["value_before"] - both["value_now"]).abs().fillna(0).max()
    one_only = int((both["value_before"].isna() != both["value_now"].isna()).sum())
    same = len(both) == len(before) == len(now) and not one_only and not apart > 0
    said = f"{len(both)} scores {'as in' if same else 'compared with'} {where}, largest difference {apart or 0:g}"
    rest = [
        (len(before) - len(both), "only there"),
        (len(now) - len(both), "only here"),
        (one_only, "with a number in one of the two only"),
    ]
    return "; ".join([said, *(f"{count} {what}" for count, what in rest if count)])
