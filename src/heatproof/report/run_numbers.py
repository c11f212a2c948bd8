"""What the report reads from a finished run, and what it derives once for all sections. Numbers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.errors import BadInput, HeatproofError
from heatproof.results.flip_book import Flips
from heatproof.results.run_info import RunInfo
from heatproof.stats.against_blind import Standing as BlindStanding
from heatproof.stats.against_blind import against_blind
from heatproof.stats.bootstrap import is_share
from heatproof.stats.groups import Groups
from heatproof.stats.interaction import interaction
from heatproof.stats.luck import Luck
from heatproof.stats.page import ALPHA, Page, PairTests
from heatproof.stats.verdict import verdict

COLOURS = 8  # more colours are hard to distinguish; further methods are drawn in grey
__all__ = ["ALPHA", "Panel", "Reading", "Standing"]


class Exhibit(Protocol):
    """One image of the gallery with its maps by method label."""

    @property
    def dataset(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def image(self) -> str: ...
    @property
    def picture(self) -> NDArray[np.uint8]: ...
    @property
    def region(self) -> NDArray[np.bool_] | None: ...
    @property
    def target(self) -> str: ...
    @property
    def maps(self) -> Mapping[str, NDArray[Any]]: ...
    @property
    def flips(self) -> Mapping[str, Mapping[str, Flips]]: ...


class Ranked(Protocol):
    """Methods best first: method, n, mean, low, high, rank, rank_low, rank_high."""

    @property
    def table(self) -> pd.DataFrame: ...


class FinishedRun(Protocol):
    """The results of a run, as read back from its files."""

    @property
    def scores(self) -> pd.DataFrame: ...
    @property
    def curves(self) -> pd.DataFrame: ...
    @property
    def details(self) -> pd.DataFrame: ...
    @property
    def pictures(self) -> pd.DataFrame: ...
    @property
    def gallery(self) -> Sequence[Any]: ...
    @property
    def info(self) -> RunInfo: ...
    @property
    def commit(self) -> str: ...
    @property
    def page(self) -> Page[tuple[str, str, str]]: ...
    @property
    def groups(self) -> Mapping[str, Groups]: ...
    def ranking(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> Ranked: ...
    def luck(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> Sequence[Luck]: ...


@dataclass(frozen=True, order=True)
class Panel:
    """One comparison of methods: a metric on one data set and one model."""

    metric: str
    dataset: str
    model: str


@dataclass(frozen=True, eq=False)
class Standing:
    """A panel's outcome: the ranking table, contenders' ranks with intervals, or why there is none."""

    table: pd.DataFrame
    ranks: Mapping[str, tuple[float, float, float]]
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Reading:
    """A finished run with everything the sections share, each computed once and on demand."""

    run: FinishedRun

    @property
    def scores(self) -> pd.DataFrame:
        """One row per dataset × model × method × metric × image."""
        return self.run.scores

    @property
    def curves(self) -> pd.DataFrame:
        """One row per curve: x and y."""
        return self.run.curves

    def detail(self, panel: Panel, name: str) -> pd.DataFrame:
        """Images × methods: one of the further numbers of a panel; NaN where there is none, empty if nowhere."""
        found = self.details_of(panel)
        return found[found["detail"] == name].pivot_table(
            index="image", columns="method", values="value", sort=False, observed=True
        )

    def details_of(self, panel: Panel) -> pd.DataFrame:
        """All further numbers of a panel: method, image, detail, value."""
        found = self.run.details
        here = (found["metric"] == panel.metric) & (found["dataset"] == panel.dataset)
        return found[here & (found["model"] == panel.model)]

    @property
    def pictures(self) -> pd.DataFrame:
        """One row per data set, model and picture: label, predicted, right; empty where the run did not keep it."""
        return self.run.pictures

    @property
    def gallery(self) -> Sequence[Exhibit]:
        """The images kept for show, with their maps."""
        return self.run.gallery

    @property
    def info(self) -> RunInfo:
        """Recipes, versions, times, summaries."""
        return self.run.info

    @cached_property
    def panels(self) -> list[Panel]:
        """Every comparison there is, in the order metrics, data sets and models were named."""
        met = self.scores[["metric", "dataset", "model"]].drop_duplicates()
        metrics = in_order(self.info.metrics, met["metric"])
        place = {name: at for at, name in enumerate(metrics)}
        found = [Panel(str(m), str(d), str(k)) for m, d, k in met.itertuples(index=False)]
        found = [panel for panel in found if self.info.metric(panel.metric).ranks]
        return sorted(found, key=lambda panel: place[panel.metric])

    @cached_property
    def metrics(self) -> list[str]:
        """Metric labels in order."""
        return list(dict.fromkeys(panel.metric for panel in self.panels))

    @cached_property
    def settings(self) -> list[tuple[str, str]]:
        """The (dataset, model) pairs, in order."""
        return list(dict.fromkeys((panel.dataset, panel.model) for panel in self.panels))

    @cached_property
    def methods(self) -> list[str]:
        """Method labels in the order they were named, controls last."""
        named = in_order(self.info.methods, self.scores["method"].drop_duplicates())
        return sorted(named, key=self.is_control)

    def is_control(self, method: str) -> bool:
        """Whether the method is a yardstick (random, oracle, edges) and not a contestant."""
        return self.info.method(method).control

    def is_unstable(self, method: str) -> bool:
        """Whether float noise moves the method's maps visibly, so that another machine gives it other scores."""
        return bool(self.info.method(method).unstable)

    def is_blind(self, method: str) -> bool:
        """Whether the method is a control that looks neither at the model nor at the answer."""
        return self.info.method(method).blind

    def higher_is_better(self, metric: str) -> bool:
        """The direction of a metric. It is never guessed: the wrong one turns a ranking upside down."""
        known = self.info.metric(metric).higher_is_better
        if known is None:
            raise BadInput(f"these results do not say whether higher {metric!r} is better: run the study again")
        return known

    def is_share(self, panel: Panel) -> bool:
        """Whether a panel's scores are hits and misses, so that their mean is a share of the images."""
        return self.info.metric(panel.metric).share or is_share(self.table(panel))

    @cached_property
    def main(self) -> list[Panel]:
        """The main comparisons, which protocols mark among variants and by-products. All panels, if none is marked."""
        return [panel for panel in self.panels if self.info.metric(panel.metric).main] or self.panels

    def named(self, panel: Panel) -> str:
        """What distinguishes this panel from others of its metric: model and data set, where there are several."""
        several_models = len({model for _, model in self.settings}) > 1
        several_datasets = len({dataset for dataset, _ in self.settings}) > 1
        parts = [panel.model] * several_models + [panel.dataset] * several_datasets
        return " · ".join(parts)

    @cached_property
    def _tables(self) -> dict[Panel, pd.DataFrame]:
        tables = {}
        for (metric, dataset, model), part in self.scores.groupby(["metric", "dataset", "model"], observed=True):
            valid = part.loc[part["status"] == "ok", ["image", "method", "value"]]
            valid = valid.drop_duplicates(["image", "method"], keep="last")
            table = valid.set_index(["image", "method"])["value"].astype(float).unstack("method")
            table.columns = [str(column) for column in table.columns]
            kept = [method for method in self.methods if method in table.columns]
            tables[Panel(str(metric), str(dataset), str(model))] = table[kept]
        return tables

    def has(self, panel: Panel) -> bool:
        """Whether a panel has scores, including metrics that do not compare methods."""
        return panel in self._tables

    def table(self, panel: Panel) -> pd.DataFrame:
        """Images × methods of one panel, NaN where a score is missing, without methods that have none."""
        return self._tables[panel]

    def contenders(self, panel: Panel) -> pd.DataFrame:
        """The panel's table without the controls."""
        table = self.table(panel)
        return table[[method for method in table.columns if not self.is_control(method)]]

    def clusters(self, dataset: str, pictures: pd.Index) -> dict[str, NDArray[np.int64]]:
        """The sampled groups of these pictures that no others hold, by name."""
        groups = self.run.groups.get(dataset)
        return {} if groups is None else groups.of(pictures).clusters()

    @cached_property
    def standings(self) -> dict[Panel, Standing]:
        """The outcome of every panel."""
        return {panel: self._standing(panel) for panel in self.panels}

    def _standing(self, panel: Panel) -> Standing:
        nothing = pd.DataFrame(columns=["method", "n", "mean", "low", "high", "rank", "rank_low", "rank_high"])
        try:
            table = self.run.ranking(panel.metric, model=panel.model, dataset=panel.dataset).table
        except HeatproofError as error:
            return Standing(nothing, {}, str(error))
        # Ranks are among the contestants: an oracle in first place would only confuse.
        ranked = table.loc[table["rank"].notna(), ["method", "rank", "rank_low", "rank_high"]]
        places = ranked.itertuples(index=False, name=None)
        return Standing(table, {str(method): (rank, low, high) for method, rank, low, high in places})

    @property
    def page(self) -> Page[tuple[str, str, str]]:
        """The tests of all panels, judged together."""
        return self.run.page

    def pairs(self, panel: Panel) -> PairTests | None:
        """Every pair of methods, controls included, tested; None where nothing can be compared."""
        return self.page.tests.get((panel.metric, panel.dataset, panel.model))

    def blind(self, panel: Panel) -> list[str]:
        """The blind controls of a panel, the one with the best mean first."""
        table = self.table(panel)
        controls = [method for method in table.columns if self.is_blind(method)]
        means = table[controls].mean()
        return [str(name) for name in means.sort_values(ascending=not self.higher_is_better(panel.metric)).index]

    def against_blind(self, panel: Panel) -> dict[str, BlindStanding]:
        """The standing of each contestant of a panel against the blind controls; `clear` means that it beats all."""
        if panel not in self._against_blind:
            methods = [str(one) for one in self.contenders(panel).columns]
            self._against_blind[panel] = against_blind(self.pairs(panel), methods, self.blind(panel))
        return self._against_blind[panel]

    @cached_property
    def _against_blind(self) -> dict[Panel, dict[str, BlindStanding]]:
        return {}

    @cached_property
    def _interactions(self) -> dict[Panel, list[str]]:
        return {}

    def interaction(self, panel: Panel) -> list[str]:
        """Whether the order of the contestants changes with the first kind of fixed groups; p allows for all panels."""
        if panel not in self._interactions:
            self._interactions[panel] = self._interaction(panel)
        return self._interactions[panel]

    def _interaction(self, panel: Panel) -> list[str]:
        groups, table = self.run.groups.get(panel.dataset), self.contenders(panel)
        fixed = groups.of(table.index).named("fixed") if groups else []
        if groups is None or not fixed or table.shape[1] < 2:
            return []
        scored = table.dropna(axis=1, how="all")
        units = groups.of(table.index).by_cluster(scored, fixed[0])
        if units is None:
            return []
        try:
            found = interaction(
                units[0],
                units[1],
                higher_is_better=self.higher_is_better(panel.metric),
                alpha=self.page.level / len(self.panels),
            )
        except HeatproofError:
            return []
        return found.sentences(fixed[0])

    def failed(self, panel: Panel) -> list[str]:
        """Methods that were run and have no score at all, because they failed."""
        rows = self.scores
        here = (rows["metric"] == panel.metric) & (rows["model"] == panel.model) & (rows["dataset"] == panel.dataset)
        broken = {str(name) for name in rows.loc[here & (rows["status"] == "failed"), "method"].unique()}
        return [method for method in self.methods if method in broken and method not in self.table(panel)]

    def verdict(self, panel: Panel) -> list[str]:
        """The verdict on the contestants of a panel, in sentences."""
        try:
            scored = self.contenders(panel)
            columns = [*scored.columns, *(method for method in self.failed(panel) if not self.is_control(method))]
            sentences = verdict(
                scored.reindex(columns=columns), self.higher_is_better(panel.metric), ALPHA, self.pairs(panel)
            )
        except HeatproofError as error:
            return [str(error)]
        return [*sentences, *self.interaction(panel)]

    @cached_property
    def colours(self) -> dict[str, int]:
        """The colour of each of the best contestants by mean rank over all panels, for the whole page."""
        ranks: dict[str, list[float]] = {}
        for standing in self.standings.values():
            for method, (rank, _, _) in standing.ranks.items():
                ranks.setdefault(method, []).append(rank / max(1, len(standing.ranks)))
        best = sorted(ranks, key=lambda method: (float(np.mean(ranks[method])), method))[:COLOURS]
        # Colours follow the order of the methods in the study, so that adding a metric repaints nothing.
        return {method: at for at, method in enumerate(sorted(best, key=self.methods.index))}


def in_order(named: Mapping[str, Any], met: pd.Series[Any]) -> list[str]:
    """The labels that occur, in the order they were named; unnamed ones come last."""
    seen = [str(label) for label in met]
    return [label for label in dict.fromkeys([*named, *seen]) if label in set(seen)]
