"""The results of a run: scores, rankings and tests of pairs. Numbers only; no model is needed from here on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from heatproof.errors import BadInput, UnknownName
from heatproof.results import run_state
from heatproof.results.gallery import Picture, kept_pictures
from heatproof.results.looks import page_of_looks
from heatproof.results.plots import Plots
from heatproof.results.ranking import Ranking, ranked
from heatproof.results.read_table import as_text, read_table
from heatproof.results.run_info import RunInfo, run_info
from heatproof.stats.groups import Groups
from heatproof.stats.luck import Luck, luck_of
from heatproof.stats.page import Card, Page, PairTests, page_tests
from heatproof.stats.significance import PairwiseTests, compare_pairs
from heatproof.storage import sealed_json
from heatproof.storage.any_path import folder

Place = tuple[str, str, str]  # metric, data set, model
PICTURE = ("dataset", "model", "image")
NO_PICTURES = pd.DataFrame(columns=[*PICTURE, "label", "predicted", "right"])
NO_DETAILS = pd.DataFrame(columns=["dataset", "model", "method", "metric", "image", "detail", "value"])

NO_REPEATS = pd.DataFrame(columns=["dataset", "model", "method", "metric", "image", "repeat", "value"])


@dataclass(frozen=True, eq=False)
class Results:
    """All rows of a run."""

    scores: pd.DataFrame
    lines: pd.DataFrame | None = None  # the curves, if they are not to be read from `root`
    root: Path | None = None
    info: RunInfo = field(default_factory=RunInfo)
    numbers: pd.DataFrame | None = None  # the details, if they are not to be read from `root`
    files: Mapping[str, str] = field(default_factory=dict)  # of `root` -> hash: what is read later must belong to these
    groups: Mapping[str, Groups] = field(default_factory=dict)  # by data set; pictures of others are independent
    truth: pd.DataFrame | None = None  # the pictures, if they are not to be read from `root`
    again: pd.DataFrame | None = None  # the repeats, if they are not to be read from `root`
    kept: pd.DataFrame | None = None  # data set, model, image: the only ones that count, if not all do
    commit: str = ""  # the identity of what the run wrote
    later: str = ""  # how a later run in the same directory ended that wrote no results

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """The results that a run last committed to its directory, checked to be complete and to belong together."""
        root = folder(path)
        state = run_state.committed(root)
        with run_state.opened(root, "info.json", state.results) as file:
            info = run_info(sealed_json.read(file.read(), root / "info.json"), root / "info.json")
        later = "" if state.state in ("complete", "stopped") else state.state
        scores = read_table(root, "scores.parquet", state.results)
        grouped = "groups.parquet" in state.results
        groups = _groups(read_table(root, "groups.parquet", state.results)) if grouped else {}
        return cls(scores, None, root, info, files=state.results, groups=groups, commit=state.commit, later=later)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """One row per curve; read on first access, since they are most of a run's numbers."""
        if self.lines is not None:
            return self._of_kept(self.lines)
        if self.root is None:
            return pd.DataFrame()
        return self._of_kept(read_table(self.root, "curves.parquet", self.files))

    @cached_property
    def details(self) -> pd.DataFrame:
        """Further numbers beside the scores, one row each: place, image, `detail` (its name), value."""
        if self.numbers is not None:
            return self._of_kept(self.numbers)
        if self.root is None:
            return NO_DETAILS
        return self._of_kept(read_table(self.root, "details.parquet", self.files))

    @cached_property
    def pictures(self) -> pd.DataFrame:
        """One row per data set, model and picture: `label`, `predicted`, and whether that is `right` (None: not known).

        Empty for runs that did not keep it.
        """
        return self._of_kept(self._every_picture)

    @cached_property
    def _every_picture(self) -> pd.DataFrame:
        """In the order in which the run met them, also those that do not count."""
        if self.truth is not None:
            return self.truth
        if self.root is None or "pictures.parquet" not in self.files:
            return NO_PICTURES
        return read_table(self.root, "pictures.parquet", self.files)

    def correct_only(self) -> Results:
        """The same results on the pictures that each model classifies correctly, tests and ranks included.

        A map of a wrong answer explains another question than the one the label asks. Pictures whose class is not known
        are left out too.
        """
        known = self.pictures
        if not known["right"].notna().any():
            raise BadInput(
                "these results do not say on which pictures the model is right: the pictures need labels that are the "
                "model's classes, in a run of this version"
            )
        right = known.loc[known["right"].eq(True), list(PICTURE)]
        if right.empty:
            raise BadInput(f"the model is right on none of these {len(known)} pictures: there is nothing to compare")
        alone = replace(self, kept=right)
        return replace(alone, scores=alone._of_kept(self.scores))

    def _of_kept(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows of the pictures that count."""
        if self.kept is None or rows.empty:
            return rows
        wanted = pd.MultiIndex.from_frame(self.kept)
        return rows[pd.MultiIndex.from_frame(rows[list(PICTURE)]).isin(wanted)].reset_index(drop=True)

    @cached_property
    def repeats(self) -> pd.DataFrame:
        """Scores of random methods under other seeds: place, image, `repeat` (1, 2, …) and value; empty without any."""
        if self.again is not None:
            return self._of_kept(self.again)
        if self.root is None or "repeats.parquet" not in self.files:
            return NO_REPEATS
        return self._of_kept(read_table(self.root, "repeats.parquet", self.files))

    def luck(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> list[Luck]:
        """How far the scores of random methods depend on the seed, beside how far they differ between pictures.

        Only of methods that were repeated under other seeds (`Study.repeats`); name one model and data set where a run
        has several.
        """
        wide = self._panel(metric, model, dataset)
        ((dataset, model),) = {(str(d), str(m)) for d, m, _ in wide.index}
        own = wide.droplevel(["dataset", "model"])
        rows = self.repeats
        here = rows[(rows["metric"] == metric) & (rows["dataset"] == dataset) & (rows["model"] == model)]
        found = []
        for method in (one for one in own.columns if one in set(here["method"])):
            again = here[here["method"] == method].pivot_table(index="image", columns="repeat", values="value")
            found.append(luck_of(str(method), own[method], again))
        return found

    @cached_property
    def page(self) -> Page[Place]:
        """The tests of every pair of methods under every metric, model and data set, judged together.

        Of a run that stopped by what it found they are the tests of its looks, which allow for that.
        """
        cards: dict[Place, Card] = {}
        for metric in self.metrics:
            about = self.info.metric(metric)
            if not about.ranks or about.higher_is_better is None:
                continue
            for (dataset, model), wide in self.table(metric).groupby(level=["dataset", "model"], sort=False):
                scored = wide.dropna(axis=1, how="all").droplevel(["dataset", "model"])
                if scored.shape[1] < 2:
                    continue
                controls = [method for method in scored.columns if self.is_control(method)]
                place = (metric, str(dataset), str(model))
                cards[place] = Card(scored, about.higher_is_better, controls, str(dataset))
        until = self.info.until
        stopped = page_of_looks(cards, self.groups, self._every_picture, until) if until else None
        return stopped or page_tests(cards, self.groups)

    @property
    def complete(self) -> bool:
        """No row failed and every picture could be read. (A method that does not apply is an answer, not a failure.)"""
        return not self.scores["status"].isin(["failed", "unreadable"]).any()

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(self.scores["metric"]))

    @property
    def settings(self) -> list[tuple[str, str]]:
        """The (dataset, model) pairs there are."""
        return [
            (str(d), str(m)) for d, m in self.scores[["dataset", "model"]].drop_duplicates().itertuples(index=False)
        ]

    def higher_is_better(self, metric: str) -> bool:
        """The direction of a metric. It is never guessed: the wrong one turns a ranking upside down."""
        known = self.info.metric(metric).higher_is_better
        if known is None:
            raise BadInput(f"these results do not say whether higher {metric!r} is better: run the study again")
        return known

    def is_control(self, method: str) -> bool:
        """Whether the method is a yardstick (random, oracle, edges) and not a contestant."""
        return self.info.method(method).control

    def is_blind(self, method: str) -> bool:
        """Whether the method is a control that knows neither the model nor the answer."""
        return self.info.method(method).blind

    def is_share(self, metric: str) -> bool:
        """Whether a metric counts hits, so that its mean is a share of the pictures."""
        return self.info.metric(metric).share

    def rows(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> pd.DataFrame:
        """The rows of one metric, of one model and data set where named."""
        if metric not in set(self.scores["metric"]):
            raise UnknownName.among("metric in these results", metric, self.metrics)
        rows = self.scores[self.scores["metric"] == metric]
        for column, wanted in (("model", model), ("dataset", dataset)):
            if wanted is not None:
                if wanted not in set(rows[column]):
                    raise UnknownName.among(f"{column} in these results", wanted, rows[column].unique())
                rows = rows[rows[column] == wanted]
        return as_text(rows)

    def table(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> pd.DataFrame:
        """Images (of each data set and model) × methods; NaN where there is no score."""
        rows = self.rows(metric, model=model, dataset=dataset)
        wide = rows.pivot_table(
            index=["dataset", "model", "image"],
            columns="method",
            values="value",
            dropna=False,
            sort=False,
            observed=True,
        )
        return wide.dropna(axis=0, how="all").dropna(axis=1, how="all")

    def ranking(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> Ranking:
        """Methods from best to worst, compared on the pictures that all of them have a score for.

        A method with scores on few of the pictures is left out, and so is a control that lacks one the methods have:
        a yardstick must not decide which pictures count, and it has no rank. Intervals need five pictures. Where a run
        has several models or data sets, name one of each: pictures that were judged twice are not twice as many.
        """
        self._check_ranks(metric)
        return ranked(self, metric, self._panel(metric, model, dataset))

    def pairs(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> PairTests:
        """Every two methods compared by the mean of their paired difference, p adjusted for the whole page."""
        self._check_ranks(metric)
        wide = self._panel(metric, model, dataset)
        self.higher_is_better(metric)
        ((at, of),) = {(str(d), str(m)) for d, m, _ in wide.index}
        found = self.page.tests.get((metric, at, of))
        if found is None:
            raise BadInput(f"comparing needs at least two methods with scores, {metric!r} ({of} on {at}) has one")
        return found

    def signed_ranks(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> PairwiseTests:
        """Every two methods compared by Wilcoxon's signed ranks instead, p adjusted by Holm's way for this table only.

        They test whether differences are symmetric about 0, which skewed ones with a mean of 0 are not, and take
        pictures for independent.
        """
        self._check_ranks(metric)
        wide = self._panel(metric, model, dataset)
        controls = [method for method in wide.columns if self.is_control(method)]
        return compare_pairs(wide, higher_is_better=self.higher_is_better(metric), controls=controls)

    def _check_ranks(self, metric: str) -> None:
        """Raise `BadInput` for a metric that describes maps and ranks no methods."""
        if self.info.metric(metric).measures == "description":
            raise BadInput(f"{metric!r} describes maps and ranks no methods: its numbers are results.table({metric!r})")

    def _panel(self, metric: str, model: str | None, dataset: str | None) -> pd.DataFrame:
        """Pictures × methods of one model and data set."""
        wide = self.table(metric, model=model, dataset=dataset)
        if wide.empty:
            raise BadInput(f"metric {metric!r} has no scores to rank; results.rows({metric!r}) says why")
        met = list(dict.fromkeys((d, m) for d, m, _ in wide.index))
        if len(met) > 1:
            named = "; ".join(f"model={m!r}, dataset={d!r}" for d, m in met[:4])
            raise BadInput(
                f"{metric!r} was scored for {len(met)} pairs of model and data set, which do not belong in one table: "
                f"name one ({named}{'; …' if len(met) > 4 else ''}), or loop over results.settings"
            )
        return wide

    @property
    def plot(self) -> Plots:
        """Figures for a paper: `results.plot.ranking()`, `curves()`, `matrix()`, `heatmaps()`; they need matplotlib."""
        return Plots(self)

    def to_latex(self, *metrics: str) -> str:
        """One table for a paper: methods × metrics, the best group by the adjusted tests in bold."""
        from heatproof.results.latex import paper_table  # it is made of results

        return paper_table(self, metrics)

    def to_json(self, *metrics: str) -> str:
        """The rankings of all metrics, or of these, as a JSON list of rows."""
        from heatproof.results import tables

        return tables.written(tables.rankings(self, metrics), "json")

    def _repr_html_(self) -> str:
        from heatproof.results.notebook import results_html  # it is made of results

        return results_html(self)

    @cached_property
    def gallery(self) -> list[Picture]:
        """The gallery: the pictures that the last run kept with their maps, in its order."""
        return [] if self.root is None else kept_pictures(self.root, self.files)


def _groups(rows: pd.DataFrame) -> dict[str, Groups]:
    """The groups of every data set, from rows of data set, image, name, kind and value."""
    found = {}
    for dataset, part in rows.groupby("dataset", sort=False):
        labels = part.pivot(index="image", columns="name", values="value")
        labels = labels[list(dict.fromkeys(part["name"]))]
        kinds = dict(zip(part["name"], part["kind"], strict=True))
        found[str(dataset)] = Groups(labels, kinds)
    return found
