"""R-OMS and NR-OMS: whether an occlusion strategy keeps the model in distribution as segments go in random order.

R-OMS is the area under the target's probability when segments go in random order, NR-OMS the same for the
likeliest class at each step. Under a strategy with a low R-OMS the model fails as soon as anything is hidden, and
flipping curves say more about the imputer than about the maps.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar, Literal, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.flip_order import Steps, area, on_grid, random_curves, removals
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.questions import Unfit
from heatproof.registry import metric, part
from heatproof.spec import recipe
from heatproof.stats.bootstrap import FloatArray, interval, resampled_means
from heatproof.traits import segmenter_traits
from heatproof.types import REMOVED, Attribution, Batch, Curve, Imputer, Model, Scored, Segmenter

Answer = Literal["target", "any"]
_DRAWN = torch.linspace(0, 1, 41, dtype=torch.float64)


@part
@dataclass(frozen=True)
class RandomOrders:
    """The number of random orders, and the grid of removed shares."""

    orders: int = 5
    steps: Steps = "linear"
    points: int = 21

    def __post_init__(self) -> None:
        if self.orders < 1:
            raise BadInput(f"orders must be at least 1, got {self.orders}")


def scope(
    model: Model,
    batch: Batch,
    occlusion: Occlusion,
    answer: Answer = "target",
    how: RandomOrders | None = None,
) -> tuple[Tensor, Curve]:
    """(B,) R-OMS (answer='target') or NR-OMS (answer='any') per image, and the mean curve behind it."""
    how = how or RandomOrders()
    game = game_of(model, batch, occlusion)
    ask = game.confidence if answer == "any" else game.value
    curves = random_curves(game, removals(game.counts, how.steps, how.points), how.orders, ask)
    drawn = torch.stack([on_grid(curve, _DRAWN) for curve in curves]).mean(0)
    return torch.stack([area(curve) for curve in curves]).mean(0), Curve(_DRAWN, drawn)


@dataclass(frozen=True)
class Scope:
    """The base of R-OMS and NR-OMS, which judge the occlusion strategy, not the method."""

    occlusion: Occlusion = field(default_factory=Occlusion)
    how: RandomOrders = field(default_factory=RandomOrders)
    answer: ClassVar[Answer]
    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "confidence")
    measures: ClassVar[Literal["pictures"]] = "pictures"

    def fast(self) -> Self:
        """The same measure on fewer points of the curve, where no grid was chosen."""
        chosen = self.how.steps != "linear" or self.how.points != RandomOrders.points
        return self if chosen else dataclasses.replace(self, how=dataclasses.replace(self.how, steps="fast"))

    def __call__(self, attribution: Attribution, /) -> Scored:
        values, curve = scope(attribution.model, attribution.batch, self.occlusion, self.answer, self.how)
        return Scored(values, curve=curve)


@metric("r_oms")
@dataclass(frozen=True)
class ROMS(Scope):
    """R-OMS: the area under the target's probability as segments go in random order, whatever the method.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    answer: ClassVar[Answer] = "target"


@metric("nr_oms")
@dataclass(frozen=True)
class NROMS(Scope):
    """NR-OMS: the area under the probability of the then likeliest class as segments go in random order.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    unfit: ClassVar[Unfit] = (("value", "it follows the probability of the likeliest class"),)

    answer: ClassVar[Answer] = "any"


CHOICES = ("model", "imputer", "shape", "number")
_NUMBERS = ("n", "side", "size")  # the fields of segmenters that say how many segments there are
_SHUFFLES = 500


def shape(segmenter: Segmenter) -> str:
    """A segmenter's label without its number of segments."""
    if not dataclasses.is_dataclass(segmenter) or isinstance(segmenter, type):
        return recipe.label(segmenter)
    usual = {f.name: f.default for f in dataclasses.fields(segmenter) if f.name in _NUMBERS}
    set_by = {name: value for name, value in usual.items() if value is not dataclasses.MISSING}
    return recipe.label(dataclasses.replace(segmenter, **set_by))  # type: ignore[type-var]


def scopes(
    models: Sequence[Model],
    batches: Mapping[str, Batch] | Batch,
    imputers: Sequence[Imputer],
    segmenters: Sequence[Segmenter],
    *,
    draws: int = 5,
    how: RandomOrders | None = None,
) -> pd.DataFrame:
    """One row per model × imputer × segmenter × image, with both scopes.

    `batches` holds one batch per model name, targets set, or one for all. Columns: model, imputer, shape (the
    segmenter without its number), number (of segments requested), image, segments (obtained), r_oms, nr_oms.
    """
    _check_distinct("models", [model.name for model in models])
    _check_distinct("imputers", [recipe.label(imputer) for imputer in imputers])
    _check_distinct("segmenters", [recipe.label(segmenter) for segmenter in segmenters])
    tables = []
    for model, imputer, segmenter in product(models, imputers, segmenters):
        batch = batches if isinstance(batches, Batch) else batches[model.name]
        occlusion = Occlusion(imputer, segmenter, draws)
        counts = game_of(model, batch, occlusion).counts
        setup = {
            "model": model.name,
            "imputer": recipe.label(imputer),
            "shape": shape(segmenter),
            "number": segmenter_traits(segmenter).expected or round(sum(counts) / len(counts)),
            "image": batch.ids,
            "segments": counts,
            "r_oms": scope(model, batch, occlusion, "target", how)[0].numpy(),
            "nr_oms": scope(model, batch, occlusion, "any", how)[0].numpy(),
        }
        tables.append(pd.DataFrame(setup))
    return pd.concat(tables, ignore_index=True)


def summary(table: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """One row per setup of a table of scopes: the means with bootstrap intervals over images."""
    rows = []
    for setup, group in _checked(table).groupby(list(CHOICES), sort=False):
        row: dict[str, object] = dict(zip(CHOICES, setup, strict=True))
        row["segments"] = group["segments"].mean()
        for name in ("r_oms", "nr_oms"):
            found = interval(group[name].to_numpy(), level=level)
            row |= {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
        rows.append(row)
    return pd.DataFrame(rows)


def spread(table: pd.DataFrame, value: str = "r_oms", *, level: float = 0.95) -> pd.DataFrame:
    """How far each design choice moves the scope: max - min over its settings with all other choices fixed.

    Columns: choice, groups (settings of the other choices in which it varies), then the mean of those ranges
    with its bootstrap interval over images, their max and their interquartile range, and `chance`. A choice that
    never varies while the others are fixed has no groups, and NaN.

    A range is never negative, so its interval cannot cover 0 even if the choice has no effect: `chance` is the mean
    range expected in that case, from shuffling every image's values among the settings of the choice.
    """
    wide = _checked(table).pivot(index="image", columns=list(CHOICES), values=value)
    if wide.isna().to_numpy().any():
        raise BadInput("every setup of a table of scopes must have the same images: ranges would mix pictures")
    setups = wide.columns.to_frame(index=False)
    drawn = resampled_means(wide.to_numpy())
    tail = (1 - level) / 2
    rows = []
    for choice in CHOICES:
        others = [name for name in CHOICES if name != choice]
        groups = [list(found.index) for _, found in setups.groupby(others) if found[choice].nunique() > 1]
        ranges = np.array([np.ptp(wide.to_numpy().mean(0)[group]) for group in groups])
        if not groups:
            rows.append({"choice": choice, "groups": 0})
            continue
        again = np.mean([np.ptp(drawn[:, group], axis=1) for group in groups], 0)
        low, high = np.quantile(again, [tail, 1 - tail])
        iqr = float(np.subtract(*np.quantile(ranges, [0.75, 0.25])))
        row = {"choice": choice, "groups": len(groups), "mean": ranges.mean(), "low": low, "high": high}
        chance = float(np.mean([_range_by_chance(wide.to_numpy()[:, group]) for group in groups]))
        rows.append(row | {"max": ranges.max(), "iqr": iqr, "chance": chance})
    return pd.DataFrame(rows, columns=["choice", "groups", "mean", "low", "high", "max", "iqr", "chance"])


def _range_by_chance(values: FloatArray) -> float:
    """The mean range of column means, (images, settings), with every image's values shuffled."""
    rng = np.random.default_rng(0)
    shuffled = (rng.permuted(values, axis=1).mean(0) for _ in range(_SHUFFLES))
    return float(np.mean([np.ptp(means) for means in shuffled]))


def _check_distinct(what: str, labels: Sequence[str]) -> None:
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise BadInput(f"{what} must have different names in a table, got several {twice[0]!r}")


def _checked(table: pd.DataFrame) -> pd.DataFrame:
    missing = [name for name in (*CHOICES, "image", "segments", "r_oms", "nr_oms") if name not in table.columns]
    if missing:
        raise BadInput(f"a table of scopes must have the columns that scopes() gives, got none of {missing}")
    doubled = table.loc[table.duplicated([*CHOICES, "image"])]
    if len(doubled):
        setup = ", ".join(f"{name} {doubled.iloc[0][name]}" for name in (*CHOICES, "image"))
        raise BadInput(f"a table of scopes must have one row per setup and image, got several of {setup}")
    return table
