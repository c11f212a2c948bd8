"""Methods × metrics of a run, with the group of the best under each metric: what a paper's table and figures show."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heatproof.errors import BadInput, HeatproofError
from heatproof.results.results import Results
from heatproof.results.run_info import ComponentInfo


@dataclass(frozen=True)
class Cell:
    """A method under one metric. It is `best` if the adjusted tests find no method that beats it, and it beats one."""

    mean: float
    low: float
    high: float
    n: int
    best: bool = False
    wins: int = 0  # methods that it beats
    losses: int = 0  # methods that beat it
    against_blind: str = "unknown"


@dataclass(frozen=True)
class Column:
    """A metric of the table."""

    metric: str
    higher_is_better: bool

    @property
    def arrow(self) -> str:
        return "↑" if self.higher_is_better else "↓"


@dataclass(frozen=True)
class Block:
    """The methods on one data set and model: methods first, controls last, each with its cell by metric."""

    dataset: str
    model: str
    cells: Mapping[str, Mapping[str, Cell]]
    controls: frozenset[str] = frozenset()
    reasons: Mapping[str, str] = field(default_factory=dict)  # metric -> why it ranks nothing here

    @property
    def contestants(self) -> list[str]:
        return [method for method in self.cells if method not in self.controls]

    def separated(self, metric: str) -> bool:
        """Whether the tests tell any two methods apart."""
        return any(self.cells[method][metric].best for method in self.contestants if metric in self.cells[method])

    @property
    def pictures(self) -> tuple[int, int]:
        """The smallest and the largest number of pictures behind a mean."""
        met = [cell.n for row in self.cells.values() for cell in row.values()]
        return (min(met), max(met)) if met else (0, 0)


@dataclass(frozen=True)
class BestGroups:
    """All of it, one block for every data set and model."""

    columns: Sequence[Column]
    blocks: Sequence[Block]
    alpha: float
    pairs: int  # that were tested together

    @property
    def metrics(self) -> list[str]:
        return [column.metric for column in self.columns]


def best_groups(
    results: Results, metrics: Sequence[str] = (), *, model: str | None = None, dataset: str | None = None
) -> BestGroups:
    """The given metrics, or the main ones of the run's protocols that rank methods."""
    for metric in metrics:
        results.rows(metric)  # an unknown one is named
    chosen = list(metrics) or main_metrics(results)
    places = [
        (d, m) for d, m in results.settings if (dataset is None or d == dataset) and (model is None or m == model)
    ]
    blocks = [block for d, m in places if (block := _block(results, chosen, d, m)).cells]
    if not blocks:
        raise BadInput("no metric of these results ranks methods: there is nothing to compare")
    there = [metric for metric in chosen if any(metric in row for block in blocks for row in block.cells.values())]
    columns = [Column(metric, results.higher_is_better(metric)) for metric in there]
    return BestGroups(columns, blocks, results.page.alpha, results.page.pairs[0])


def main_metrics(results: Results) -> list[str]:
    """The metrics that are answers of their protocols and rank methods; all that rank methods if none is."""
    ranking = [
        metric
        for metric in results.metrics
        if results.info.metric(metric).ranks and results.info.metric(metric).higher_is_better is not None
    ]
    return [metric for metric in ranking if results.info.metric(metric).main] or ranking


def _block(results: Results, metrics: Sequence[str], dataset: str, model: str) -> Block:
    found: dict[str, dict[str, Cell]] = {}
    reasons: dict[str, str] = {}
    for metric in metrics:
        try:
            table = results.ranking(metric, dataset=dataset, model=model).table
        except HeatproofError as error:
            reasons[metric] = str(error)
            continue
        own = table[~table["control"]]
        distinguished = bool((own["rank_low"] > 1).any())
        for row in table.to_dict("records"):
            found.setdefault(str(row["method"]), {})[metric] = _cell(row, len(own), distinguished)
    controls = frozenset(method for method in found if results.is_control(method))
    ordered = sorted(found, key=lambda method: (method in controls, _standing(found[method])))
    return Block(dataset, model, {method: found[method] for method in ordered}, controls, reasons)


def _cell(row: Mapping[Hashable, Any], methods: int, distinguished: bool) -> Cell:
    plain = float(row["mean"]), float(row["low"]), float(row["high"]), int(row["n"])
    if row["control"]:
        return Cell(*plain, against_blind="control")
    wins, losses = methods - int(row["rank_high"]), int(row["rank_low"]) - 1
    return Cell(*plain, distinguished and not losses, wins, losses, str(row["against_blind"]))


def _standing(row: Mapping[str, Cell]) -> float:
    """Smaller for methods that win more often; equal ones keep the order of the first metric."""
    return -sum(cell.wins - cell.losses for cell in row.values()) / len(row)


def hidden(components: Mapping[str, ComponentInfo], labels: Sequence[str]) -> dict[str, list[str]]:
    """What components hide, in words -> the components that hide it."""
    found: dict[str, list[str]] = {}
    for label in labels:
        if label in components and (words := components[label].hides):
            found.setdefault(words, []).append(label)
    return found


def decimals(values: Sequence[float]) -> int:
    """Digits after the point that show three digits of the largest value."""
    largest = max((abs(value) for value in values if not math.isnan(value)), default=0.0)
    return 3 if not 0 < largest < 0.1 else 2 - math.floor(math.log10(largest))
