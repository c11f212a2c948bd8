"""Short method names for the page: a method goes by its bare name where no other method of the run has the same.

`saliency(signed=True, pooling=positive_sum)` is `saliency` on the page if it is the only saliency there; the whole
label stands under "What was run".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from heatproof.report.run_numbers import Exhibit, FinishedRun, Ranked
from heatproof.results.gallery import Picture
from heatproof.results.method_names import short_names
from heatproof.results.run_info import RunInfo
from heatproof.stats.groups import Groups
from heatproof.stats.luck import Luck
from heatproof.stats.page import Page, PairTests


@dataclass(frozen=True)
class _Ranking:
    table: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Named:
    """A finished run in which methods go by their short names."""

    inner: FinishedRun

    @cached_property
    def names(self) -> dict[str, str]:
        met = self.inner.scores["method"].drop_duplicates().astype(str)
        return short_names([*self.inner.info.methods, *met])

    @cached_property
    def scores(self) -> pd.DataFrame:
        return self._renamed(self.inner.scores)

    @cached_property
    def curves(self) -> pd.DataFrame:
        return self._renamed(self.inner.curves)

    @cached_property
    def details(self) -> pd.DataFrame:
        return self._renamed(self.inner.details)

    @property
    def pictures(self) -> pd.DataFrame:
        return self.inner.pictures

    @cached_property
    def gallery(self) -> Sequence[Exhibit]:
        return [self._shown(exhibit) for exhibit in self.inner.gallery]

    @cached_property
    def info(self) -> RunInfo:
        return self.inner.info.called(self.names)

    @property
    def commit(self) -> str:
        return self.inner.commit

    def ranking(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> Ranked:
        return _Ranking(self._renamed(self.inner.ranking(metric, model=model, dataset=dataset).table))

    def luck(self, metric: str, *, model: str | None = None, dataset: str | None = None) -> Sequence[Luck]:
        found = self.inner.luck(metric, model=model, dataset=dataset)
        return [replace(one, method=self.names.get(one.method, one.method)) for one in found]

    @cached_property
    def page(self) -> Page[tuple[str, str, str]]:
        page = self.inner.page
        return replace(page, tests={place: self._retold(tests) for place, tests in page.tests.items()})

    @property
    def groups(self) -> Mapping[str, Groups]:
        return self.inner.groups

    def _retold(self, tests: PairTests) -> PairTests:
        names = {**self.names, "": ""}
        columns = ("method_a", "method_b", "winner")
        frame = tests.frame.assign(
            **{name: tests.frame[name].map(lambda label: names.get(label, label)) for name in columns}
        )
        return replace(tests, frame=frame, methods=tuple(names.get(label, label) for label in tests.methods))

    def _shown(self, exhibit: Exhibit) -> Exhibit:
        maps = {self.names.get(label, label): found for label, found in exhibit.maps.items()}
        flips = {self.names.get(label, label): books for label, books in exhibit.flips.items()}
        seen = (exhibit.dataset, exhibit.model, exhibit.image, exhibit.picture, exhibit.region, exhibit.target)
        return Picture(*seen, maps, flips)

    def _renamed(self, table: pd.DataFrame) -> pd.DataFrame:
        if "method" not in table.columns:
            return table
        return table.assign(method=table["method"].astype(str).map(lambda label: self.names.get(label, label)))
