"""Flip orders: the order in which segments are removed, and the curve of the model's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.game import Game
from heatproof.occlusion.segments import totals
from heatproof.types import Batch, Curve, Maps

Steps: TypeAlias = Literal["linear", "paper", "fast"]
FAST = 9  # points of a `fast` curve: benchmarks/until_solid.py prints what they keep of the ranking

# AUCs are rounded to a binary fraction far below float32 noise: their differences are then exact, and so is
# SRG = LIF - MIF = MRG + LRG.
_FRACTION = 2.0**40


def pooled(game: Game, maps: Maps) -> Tensor:
    """(B, n) float64: the mean of the map over each segment; NaN where an image has fewer than n segments."""
    return totals(game.segments, maps.to(game.segments.device), game.sizes.shape[1]) / game.sizes


def removal_ranks(values: Tensor, luck: Tensor) -> Tensor:
    """(B, n): each segment's rank when the largest value is removed first; ties by `luck`, NaN last."""
    keys = np.where(np.isnan(values.numpy()), np.inf, -values.numpy())
    ranks = np.empty(keys.shape, np.int64)
    for row, key, lot in zip(ranks, keys, luck.numpy(), strict=True):
        row[_order(key, lot)] = np.arange(len(key))
    return torch.from_numpy(ranks)


def _order(keys: npt.NDArray[np.float64], luck: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The permutation that sorts the keys, ties by luck: `lexsort((luck, keys))`, in a third of its time if few tie."""
    order = keys.argsort()
    ascending = keys[order]
    equal = ascending[1:] == ascending[:-1]
    if equal.any():
        tied = np.zeros(len(keys), bool)
        tied[1:] |= equal
        tied[:-1] |= equal
        value = np.zeros(len(keys), np.int64)  # index among the distinct values, ascending
        np.cumsum(~equal, out=value[1:])
        among = order[tied]
        order[tied] = among[np.lexsort((luck[among], value[tied]))]
    return order


def tied(values: Tensor) -> Tensor:
    """(B,): the share of segments that share their value with another segment."""
    ordered = values.sort(1).values  # NaN last, and NaN equals nothing
    same = ordered[:, 1:] == ordered[:, :-1]
    edge = torch.zeros(len(values), 1, dtype=torch.bool)
    either = torch.cat([edge, same], 1) | torch.cat([same, edge], 1)
    return either.sum(1) / values.isfinite().sum(1)


def lots(batch: Batch, counts: tuple[int, ...], purpose: str) -> Tensor:
    """(B, n) int64: a uniform random order of each image's own segments, the same for all methods; padding follows."""
    widest = max(counts, default=0)
    rows = torch.arange(widest).repeat(len(counts), 1)
    for row, count, generator in zip(rows, counts, batch.generators(purpose), strict=True):
        row[:count] = torch.randperm(count, generator=generator)
    return rows


def removals(counts: tuple[int, ...], steps: Steps, points: int) -> Tensor:
    """(B, K) int64: the number of removed segments at each step, from none to all; short grids repeat the end."""
    if points < 2:
        raise BadInput(f"a curve needs at least 2 points, got {points}")
    grids = []
    for count in counts:
        if steps == "paper":
            inner = np.geomspace(1, count, 15).astype(np.int64)
            grids.append(np.unique(np.concatenate([[0], inner, [count]])))
        else:
            most = min(FAST, points) if steps == "fast" else points
            grids.append(np.unique(np.linspace(0, count, most).round().astype(np.int64)))
    longest = max((len(grid) for grid in grids), default=0)
    padded = [np.pad(grid, (0, longest - len(grid)), mode="edge") for grid in grids]
    return torch.from_numpy(np.stack(padded) if padded else np.empty((0, 0), np.int64))


def removal_curve(game: Game, ranks: Tensor, removed: Tensor, ask: Callable[[Tensor], Tensor] | None = None) -> Curve:
    """x = the removed share of the picture's area, from 0 to exactly 1; y = the game's value."""
    coalitions = ranks[:, None, :] >= removed[:, :, None]
    return Curve(share_gone(game.sizes, ranks, removed), (ask or game.value)(coalitions))


def share_gone(sizes: Tensor, ranks: Tensor, removed: Tensor) -> Tensor:
    """(B, K): the share of the area of the first `removed` segments in the order."""
    by_rank = torch.zeros_like(sizes).scatter_(1, ranks, sizes)
    gone = torch.cat([torch.zeros(len(ranks), 1, dtype=torch.float64), by_rank.cumsum(1)], 1)
    return gone.gather(1, removed) / sizes.sum(1, keepdim=True)


def area(curve: Curve) -> Tensor:
    """(B,): the area under each image's curve."""
    return (torch.trapezoid(curve.y, curve.x) * _FRACTION).round() / _FRACTION


def random_curves(
    game: Game, removed: Tensor, orders: int, ask: Callable[[Tensor], Tensor] | None = None
) -> list[Curve]:
    """Curves for uniform random orders of removal: seeded by image, shared by all methods."""
    draws = (lots(game.batch, game.counts, f"random order {draw}") for draw in range(orders))
    return [removal_curve(game, ranks, removed, ask) for ranks in draws]


def on_grid(curve: Curve, x: Tensor) -> Tensor:
    """(B, len(x)): the curves interpolated at the same places, for drawing."""
    rows = [np.interp(x.numpy(), cx, cy) for cx, cy in zip(curve.x.numpy(), curve.y.numpy(), strict=True)]
    return torch.from_numpy(np.stack(rows) if rows else np.empty((0, len(x))))
