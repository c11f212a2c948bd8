"""Two runs side by side: which scores moved, by more than noise, and what only one of the runs has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from heatproof.errors import BadInput, UnknownName
from heatproof.results.results import Results
from heatproof.stats.page import ALPHA
from heatproof.stats.two_runs import Cell, Move, moves

Place = tuple[str, str, str, str]  # data set, model, metric, method
KINDS = ("dataset", "model", "metric", "method")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every cell that both runs have, and the names that only one of them has, by kind."""

    moves: tuple[Move[Place], ...]
    only: tuple[dict[str, list[str]], dict[str, list[str]]]
    reversed: frozenset[str]  # metrics of which lower is better
    alpha: float = ALPHA

    @property
    def moved(self) -> list[Move[Place]]:
        """The cells that moved by more than noise, the surest first."""
        return sorted((one for one in self.moves if one.outcome in ("up", "down")), key=lambda one: one.p)

    def better(self, move: Move[Place]) -> bool:
        """Whether a cell that moved became better."""
        return (move.outcome == "up") != (move.key[2] in self.reversed)

    def count(self, *outcomes: str) -> int:
        return sum(one.outcome in outcomes for one in self.moves)

    def sentences(self) -> list[str]:
        """What the comparison comes to, for people."""
        total = len(self.moves)
        paired = sum(one.basis == "paired" for one in self.moves)
        solid = self.count("up", "down")
        better = sum(self.better(one) for one in self.moved)
        kind = "paired by picture" if paired == total else f"{paired} paired by picture" if paired else "unpaired"
        found = [f"{total} cells (method, metric, model, data set) are in both runs, {kind}."]
        if self.count("same") == total:
            found.append("All their scores are equal.")
        else:
            few = self.count("few")
            unknown = f", {few} {'has' if few == 1 else 'have'} too few pictures to tell" if few else ""
            counts = (
                f"{self.count('noise')} differ within it, {self.count('same')} are equal to the last digit{unknown}"
            )
            moved = f"{solid} moved by more than noise ({better} better, {solid - better} worse)" if solid else ""
            found.append(
                f"{moved or 'None moved by more than noise'}, {counts}. "
                f"The chance of any false move among all of them is at most {self.alpha:.0%}."
            )
        for which, names in zip(("first", "second"), self.only, strict=True):
            parts = [f"{kind} {', '.join(listed)}" for kind, listed in names.items() if listed]
            if parts:
                found.append(f"Only in the {which}: {'; '.join(parts)}.")
        return found


def compare(first: Results, second: Results, *, metrics: Sequence[str] = (), alpha: float = ALPHA) -> Comparison:
    """Compare what two runs have in common, or these metrics of it; `BadInput` if that is nothing."""
    for name in metrics:
        if name not in {*first.metrics, *second.metrics}:
            raise UnknownName.among("metric in these results", name, [*first.metrics, *second.metrics])
    tables = [_cells(results, metrics) for results in (first, second)]
    shared = [key for key in tables[0] if key in tables[1]]
    if not shared:
        raise BadInput(
            "these runs have no data set, model, metric and method in common: "
            f"the first has {_some(first.metrics)}, the second {_some(second.metrics)} as metrics"
        )
    turned = frozenset(metric for metric in {key[2] for key in shared} if not _higher(first, second, metric))
    cells = {key: Cell(tables[0][key], tables[1][key], key[0]) for key in shared}
    names = [{kind: set(results.scores[kind].astype(str)) for kind in KINDS} for results in (first, second)]
    only = tuple({kind: sorted(names[a][kind] - names[1 - a][kind]) for kind in KINDS} for a in (0, 1))
    found = moves(cells, {**second.groups, **first.groups}, alpha=alpha)
    return Comparison(tuple(found), (only[0], only[1]), turned, alpha)


def _cells(results: Results, metrics: Sequence[str]) -> dict[Place, pd.Series[float]]:
    rows = results.scores[results.scores["status"] == "ok"]
    wanted = metrics or results.metrics
    ranking = [name for name in results.metrics if results.info.metric(name).ranks and name in wanted]
    rows = rows[rows["metric"].isin(ranking)]
    return {
        (str(key[0]), str(key[1]), str(key[2]), str(key[3])): part.drop_duplicates("image").set_index("image")["value"]
        for key, part in rows.groupby(list(KINDS), sort=False, observed=True)
    }


def _higher(first: Results, second: Results, metric: str) -> bool:
    known = {results.higher_is_better(metric) for results in (first, second)}
    if len(known) > 1:
        raise BadInput(f"the runs disagree on whether higher {metric!r} is better: they are of different metrics")
    return known.pop()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
