"""Rounds of a run that stops when it is solid: which shards come next, and what those that are done decide.

Decisions are taken from stored units, shard after shard in a fixed order. How many shards a round computes at once
depends on the workers, where the run stops does not: what was computed beyond that is left out of the results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from heatproof.data._support.picture_groups import groups_of
from heatproof.errors import BadInput, UnknownName
from heatproof.registry import name_of
from heatproof.results.results import APART
from heatproof.run.shards import Shard
from heatproof.run.store import Store
from heatproof.run.until import Solid
from heatproof.spec import recipe
from heatproof.stats.cluster_robust import FEWEST_CLUSTERS
from heatproof.stats.decisions import TUNED, Comparison
from heatproof.stats.groups import Groups, outermost
from heatproof.traits import method_traits, metric_traits
from heatproof.types import Dataset

Clusters = Mapping[str, Hashable]  # picture -> its cluster


@dataclass
class Series:
    """The shards of one data set under one model, in the order in which they count, and what they decide by metric."""

    dataset: str
    model: str
    steps: list[list[Shard]]  # one shard of every study each
    comparisons: dict[str, Comparison]
    clusters: Clusters | None
    kept: list[Shard] = field(default_factory=list)  # whose units decided, as far as the run has got
    at: int = 0

    @property
    def decided(self) -> bool:
        return self.at > 0 and not any(one.open for one in self.comparisons.values())

    @property
    def over(self) -> bool:
        return self.decided or self.at == len(self.steps)

    @property
    def pictures(self) -> int:
        return len({name for step in self.steps[: self.at] for shard in step for name in shard.ids})

    def needed(self, step: Sequence[Shard]) -> list[Shard]:
        """The shards of a step without the units of methods that were dropped."""
        gone = {(method, metric) for metric, one in self.comparisons.items() for method in one.dropped}
        return [
            dataclasses.replace(shard, units={names: key for names, key in shard.units.items() if names not in gone})
            for shard in step
        ]

    def take(self, store: Store) -> None:
        """Let the next step decide, from its stored units."""
        step = self.needed(self.steps[self.at])
        scores: dict[str, dict[str, dict[str, float | None]]] = {}
        for shard in step:
            for (method, metric), key in shard.units.items():
                if metric in self.comparisons and (unit := store.get(key, shard.ids)) is not None:
                    found = scores.setdefault(metric, {}).setdefault(method, {})
                    found |= dict(zip(unit.images, unit.values, strict=True))
        pictures = list(dict.fromkeys(name for shard in step for name in shard.ids))
        for metric, one in self.comparisons.items():
            one.add(pictures, scores.get(metric, {}), self.clusters)
        self.kept += step
        self.at += 1


def series_of(work: Sequence[Shard], rule: Solid) -> list[Series]:
    """The family of comparisons, fixed before the first picture: all pairs × metrics × models × data sets."""
    places: dict[tuple[str, str], list[Shard]] = {}
    for shard in work:
        places.setdefault((shard.place["dataset"], shard.place["model"]), []).append(shard)
    contests = {place: _contests(shards, rule) for place, shards in places.items()}
    family = _pairs(contests)
    if not family:
        _refuse(work, rule)
    return [
        Series(
            *place,
            _steps(shards),
            {
                metric: Comparison(
                    methods,
                    rule.alpha / family,
                    rule.margin,
                    max(shard.study.shard for shard in shards),
                    metric_traits(component).share,
                    bool(component.higher_is_better),
                    rule.race,
                )
                for metric, (component, methods) in contests[place].items()
            },
            _clusters(shards[0].dataset),
        )
        for place, shards in places.items()
    ]


def _contests(shards: Sequence[Shard], rule: Solid) -> dict[str, tuple[Any, list[str]]]:
    """By metric: the metric, and the methods (no controls) that it compares here."""
    found: dict[str, tuple[Any, list[str]]] = {}
    for study in dict.fromkeys(shard.study for shard in shards):
        methods = [recipe.label(method) for method in study.methods if not method_traits(method).control]
        for metric in study.metrics:
            label = recipe.label(metric)
            known = name_of(metric)
            if metric_traits(metric).measures in APART or rule.metric not in (None, label, known and known[1]):
                continue
            _, met = found.setdefault(label, (metric, []))
            met += [method for method in methods if method not in met]
    return {label: (metric, methods) for label, (metric, methods) in found.items() if len(methods) > 1}


def _pairs(contests: Mapping[Any, Mapping[str, tuple[Any, list[str]]]]) -> int:
    return sum(len(met) * (len(met) - 1) // 2 for metrics in contests.values() for _, met in metrics.values())


def _refuse(work: Sequence[Shard], rule: Solid) -> None:
    labels = list(dict.fromkeys(recipe.label(metric) for shard in work for metric in shard.study.metrics))
    if rule.metric is not None and rule.metric not in labels:
        raise UnknownName.among("metric of this study", rule.metric, labels)
    raise BadInput(
        "stopping when it is solid needs at least two methods that are no controls and a metric that compares them: "
        "add methods, or leave --until out"
    )


def _steps(shards: Sequence[Shard]) -> list[list[Shard]]:
    """The first shards of all studies, then the second ones, and so on."""
    by_study: dict[Any, list[Shard]] = {}
    for shard in shards:
        by_study.setdefault(shard.study, []).append(shard)
    most = max(map(len, by_study.values()))
    return [[one[at] for one in by_study.values() if at < len(one)] for at in range(most)]


def _clusters(dataset: Dataset) -> Clusters | None:
    """The sampled groups of a data set's pictures, whole ones of which make a unit; None where it declares none."""
    declared = {name: one for name, one in groups_of(dataset).items() if one.kind == "sampled"}
    if not declared:
        return None
    ids = dataset.ids()
    labels = pd.DataFrame({name: list(one.labels) for name, one in declared.items()}, index=list(ids))
    groups = Groups(labels, {name: one.kind for name, one in declared.items()})
    codes = outermost({name: groups.codes(name) for name in groups.named("sampled")})
    if not codes:
        return None
    name = recipe.label(dataset)
    if len(codes) > 1:
        raise BadInput(
            f"the pictures of {name!r} share sampled groups of {len(codes)} crossed kinds ({', '.join(codes)}), so "
            "that the same groups come back in every shard: no rule that looks after every shard is valid for them. "
            "Judge a fixed number of pictures (--limit) and leave --until out"
        )
    ((kind, code),) = codes.items()
    count = len(np.unique(code))
    if count < FEWEST_CLUSTERS:
        raise BadInput(
            f"the pictures of {name!r} fall into {count} groups ({kind}), which are units of the test: at least "
            f"{FEWEST_CLUSTERS} are needed for any decision. Judge a fixed number of pictures and leave --until out"
        )
    return dict(zip(ids, code.tolist(), strict=True))


def rounds(series: Sequence[Series], store: Store, workers: int) -> Iterator[list[Shard]]:
    """The shards to do next, enough for all workers. Each round must be done before the next is taken."""
    while left := [one for one in series if not one.over]:
        shards = sum(len(one.steps[one.at]) for one in left)
        ahead = -(-max(1, workers) // shards)
        spans = {id(one): one.steps[one.at : one.at + ahead] for one in left}
        yield [shard for step in range(ahead) for one in left for shard in _at(one, spans[id(one)], step)]
        for one in left:
            for _ in spans[id(one)]:
                if not one.over:
                    one.take(store)


def _at(one: Series, span: Sequence[Sequence[Shard]], step: int) -> list[Shard]:
    return one.needed(span[step]) if step < len(span) else []


def progress(series: Sequence[Series]) -> str:
    """How many pairs are decided, and how many are open."""
    comparisons = [one for place in series for one in place.comparisons.values()]
    decided, still = sum(len(one.decided) for one in comparisons), sum(len(one.open) for one in comparisons)
    return f"{decided} pairs decided, {still} open"


def described(series: Sequence[Series], rule: Solid, finished: bool = True) -> dict[str, Any]:
    """What was decided, when and why the run stopped, as typed data for info.json."""
    comparisons = [(place, metric, one) for place in series for metric, one in place.comparisons.items()]
    pairs = [
        {
            "dataset": place.dataset,
            "model": place.model,
            "metric": metric,
            "method_a": found.first,
            "method_b": found.second,
            "outcome": found.outcome,
            "units": found.units,
            "pictures": found.pictures,
            **{name: _finite(getattr(found, name)) for name in ("difference", "low", "high")},
        }
        for place, metric, one in comparisons
        for found in one.standing()
    ]
    stops = [
        {
            "dataset": one.dataset,
            "model": one.model,
            "shards": one.at,
            "pictures": one.pictures,
            "available": len({name for step in one.steps for shard in step for name in shard.ids}),
            "unit": "clusters" if one.clusters is not None else "pictures",
            "reason": ("decided" if one.decided else "max_images") if one.over else "interrupted",
        }
        for one in series
    ]
    return {
        **rule.plain(),
        "unit": max(one.unit for _, _, one in comparisons),
        "tuned": TUNED,
        "family": sum(len(one.pairs) for _, _, one in comparisons),
        "level": comparisons[0][2].level,
        "finished": finished,
        "stops": stops,
        "pairs": pairs,
        "undecided": sum(len(one.open) for _, _, one in comparisons),
        "dropped": [
            {"dataset": place.dataset, "model": place.model, "metric": metric, "method": method, "pictures": count}
            for place, metric, one in comparisons
            for method, count in one.dropped.items()
        ],
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
