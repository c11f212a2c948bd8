"""The page of a run that stopped by what it found: the tests of its looks, made again from its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from heatproof.results.run_info import Stop, Until
from heatproof.stats.decisions import decided, look
from heatproof.stats.groups import Groups
from heatproof.stats.page import Card, Page

Place = tuple[str, str, str]  # metric, data set, model


def page_of_looks(
    cards: Mapping[Place, Card], groups: Mapping[str, Groups], pictures: pd.DataFrame, until: Until
) -> Page[Place] | None:
    """The decisions of the run, with the tests that only the report needs; None where there was no look.

    `pictures` are those of the run in its order, one row per data set, model and image.
    """
    looks: list[Page[Place]] = []
    for number in range(1, len(until.levels) + 1):
        seen = {(stop.dataset, stop.model): _first(pictures, stop, stop.looks[number - 1]) for stop in until.stops}
        here = {place: _cut(card, seen.get(place[1:], [])) for place, card in cards.items()}
        here = {place: card for place, card in here.items() if card.table.shape[1] > 1}
        if here or looks:
            looks.append(look(here, groups, number, alpha=until.alpha))
    return decided(looks, alpha=until.alpha, margin=until.margin) if looks else None


def _first(pictures: pd.DataFrame, stop: Stop, count: int) -> list[str]:
    here = (pictures["dataset"] == stop.dataset) & (pictures["model"] == stop.model)
    return list(pictures.loc[here, "image"].iloc[:count])


def _cut(card: Card, images: Sequence[str]) -> Card:
    """The card of these images, in their order: resamples are drawn by it."""
    table = card.table.loc[[image for image in images if image in card.table.index]]
    return replace(card, table=table.dropna(axis=0, how="all").dropna(axis=1, how="all"))
