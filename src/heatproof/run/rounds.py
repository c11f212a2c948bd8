"""Rounds of a run that stops when it is solid: which shards come next, and what those that are done decide.

Decisions are taken from stored units, look after look at numbers of shards that are fixed beforehand. How many shards a
round computes at once depends on the workers, where the run stops does not: what was computed beyond that is left out
of the results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from heatproof.data._support.picture_groups import groups_of
from heatproof.errors import BadInput, UnknownName
from heatproof.registry import name_of
from heatproof.results.run_info import APART, Decision, Dropped, Stop, Until
from heatproof.run.shards import Shard
from heatproof.run.store import Store
from heatproof.run.until import NAME, Solid
from heatproof.spec import recipe
from heatproof.stats.cluster_robust import FEWEST_CLUSTERS
from heatproof.stats.decisions import decided, look
from heatproof.stats.groups import Groups, outermost
from heatproof.stats.looks import look_steps, share
from heatproof.stats.page import Card, Page, PairTests
from heatproof.traits import method_traits, metric_traits
from heatproof.types import Dataset

Place = tuple[str, str, str]  # metric, data set, model
Scores = dict[str, dict[str, float]]  # method -> picture -> score


@dataclass
class Contest:
    """The methods of one metric on one data set and model, with the scores that have come in."""

    methods: list[str]
    controls: list[str]
    higher_is_better: bool
    followed: bool  # whether the run waits for its pairs
    scores: Scores = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)  # method -> pictures it was judged on

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.methods, 2))

    def drop(self, methods: Collection[str], pictures: int) -> None:
        """These methods leave the race after so many pictures."""
        self.dropped |= {one: pictures for one in self.methods if one in methods and one not in self.dropped}

    def card(self, pictures: Sequence[str], population: str) -> Card | None:
        """The scores as a table; None where fewer than two methods have any."""
        named = [method for method in (*self.methods, *self.controls) if method in self.scores]
        table = pd.DataFrame({one: self.scores[one] for one in named}, index=list(pictures), dtype=np.float64)
        table = table.dropna(axis=0, how="all").dropna(axis=1, how="all")
        return Card(table, self.higher_is_better, self.controls, population) if table.shape[1] > 1 else None


@dataclass
class Series:
    """The shards of one data set under one model, in the order in which they count, and its contests by metric."""

    dataset: str
    model: str
    steps: list[list[Shard]]  # one shard of every study each
    contests: dict[str, Contest]
    groups: Groups | None
    kept: list[Shard] = field(default_factory=list)  # whose units decided, as far as the run has got
    looks: list[int] = field(default_factory=list)  # pictures at each look of the run
    open: int = 1  # pairs that the run waits for
    at: int = 0

    @property
    def over(self) -> bool:
        return self.at > 0 and (not self.open or self.at == len(self.steps))

    @property
    def pictures(self) -> list[str]:
        return list(dict.fromkeys(name for step in self.steps[: self.at] for shard in step for name in shard.ids))

    def needed(self, step: Sequence[Shard]) -> list[Shard]:
        """The shards of a step without the units of methods that were dropped."""
        gone = {(method, metric) for metric, one in self.contests.items() for method in one.dropped}
        return [
            dataclasses.replace(shard, units={names: key for names, key in shard.units.items() if names not in gone})
            for shard in step
        ]

    def take(self, store: Store, upto: int) -> None:
        """Let the steps before `upto` count, with their stored scores."""
        for step in self.steps[self.at : upto]:
            for shard in self.needed(step):
                for (method, metric), key in shard.units.items():
                    if metric in self.contests and (values := store.values(key, shard.ids)) is not None:
                        known = self.contests[metric].scores.setdefault(method, {})
                        pairs = zip(shard.ids, values, strict=True)
                        known |= {image: value for image, value in pairs if value is not None}
                self.kept.append(shard)
        self.at = min(upto, len(self.steps))


@dataclass
class Course:
    """All series of a run, and what the looks at them have decided."""

    rule: Solid
    series: list[Series]
    pages: list[Page[Place]] = field(default_factory=list)
    decided: Page[Place] | None = None

    def progress(self) -> str:
        """How many pairs are decided, and how many are open."""
        every = [found.outcome for found in _standing(self)]
        still = sum(one.open for one in self.series) if self.pages else len(every)
        return f"{sum(one != 'open' for one in every)} pairs decided, {still} open"

    @property
    def left(self) -> list[Series]:
        return [one for one in self.series if not one.over]

    @property
    def steps(self) -> list[int]:
        """After which steps the run looks."""
        return look_steps(max(len(one.steps) for one in self.series))

    def look(self, store: Store) -> None:
        """Let the shards up to the next look count, and decide what can be decided."""
        upto = self.steps[len(self.pages)]
        for one in self.left:
            one.take(store, upto)
        cards: dict[Place, Card] = {}
        for one in self.series:
            pictures = one.pictures
            one.looks.append(len(pictures))
            for metric, contest in one.contests.items():
                if (card := contest.card(pictures, one.dataset)) is not None:
                    cards[metric, one.dataset, one.model] = card
        groups = {one.dataset: one.groups for one in self.series if one.groups is not None}
        self.pages.append(look(cards, groups, len(self.pages) + 1, alpha=self.rule.alpha))
        self.decided = decided(self.pages, alpha=self.rule.alpha, margin=self.rule.margin)
        for one in self.series:
            self._settle(one)

    def _settle(self, one: Series) -> None:
        """Which pairs of a series stay open, and which methods leave the race."""
        followed = {metric: contest for metric, contest in one.contests.items() if contest.followed}
        one.open = 0
        for metric, contest in followed.items():
            tests = self.tests(metric, one)
            if tests is None:
                continue
            rows = tests.among(contest.methods)
            if self.rule.race:
                beaten = {worse for better, worse in tests.beats() if better in contest.methods}
                contest.drop(beaten, len(one.pictures))
                rows = tests.among([method for method in contest.methods if method not in beaten])
            one.open += int((rows["outcome"] == "open").sum())
        for contest in one.contests.values():
            if not contest.followed and followed:  # no scores are wanted of what every race has dropped
                gone = set.intersection(*(set(race.dropped) for race in followed.values()))
                contest.drop(gone, len(one.pictures))

    def tests(self, metric: str, one: Series) -> PairTests | None:
        """The decisions of a contest so far; None before there are any."""
        return None if self.decided is None else self.decided.tests.get((metric, one.dataset, one.model))


def course_of(work: Sequence[Shard], rule: Solid) -> Course:
    """The comparisons of a run, fixed before the first picture: all pairs × metrics × models × data sets."""
    places: dict[tuple[str, str], list[Shard]] = {}
    for shard in work:
        places.setdefault((shard.place["dataset"], shard.place["model"]), []).append(shard)
    series = [
        Series(*place, _steps(shards), _contests(shards, rule), _groups(shards[0].dataset))
        for place, shards in places.items()
    ]
    if not any(one.followed for place in series for one in place.contests.values()):
        _refuse(work, rule)
    return Course(rule, series)


def _contests(shards: Sequence[Shard], rule: Solid) -> dict[str, Contest]:
    """By metric: the methods and controls that it compares here."""
    found: dict[str, Contest] = {}
    for study in dict.fromkeys(shard.study for shard in shards):
        for metric in study.metrics:
            label, known = recipe.label(metric), name_of(metric)
            if metric_traits(metric).measures in APART:
                continue
            wanted = rule.metric in (None, label, known and known[1])
            higher = bool(metric.higher_is_better)  # type: ignore[union-attr]
            one = found.setdefault(label, Contest([], [], higher, wanted))
            for method in study.methods:
                side = one.controls if method_traits(method).control else one.methods
                if recipe.label(method) not in side:
                    side.append(recipe.label(method))
    for one in found.values():
        one.followed &= len(one.methods) > 1
    return found


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


def _groups(dataset: Dataset) -> Groups | None:
    """The groups of a data set's pictures, as the tests need them; refuses those that could never decide anything."""
    declared = groups_of(dataset)
    if not declared:
        return None
    labels = pd.DataFrame({name: list(one.labels) for name, one in declared.items()}, index=list(dataset.ids()))
    groups = Groups(labels, {name: one.kind for name, one in declared.items()})
    codes = outermost({name: groups.codes(name) for name in groups.named("sampled")})
    name = recipe.label(dataset)
    if len(codes) > 2:
        raise BadInput(
            f"the pictures of {name!r} share sampled groups of {len(codes)} crossed kinds ({', '.join(codes)}): no "
            "test here allows for more than two. Judge a fixed number of pictures (--limit) and leave --until out"
        )
    for kind, code in codes.items():
        if (count := len(np.unique(code))) < FEWEST_CLUSTERS:
            raise BadInput(
                f"the pictures of {name!r} fall into {count} groups ({kind}), which are units of the test: at least "
                f"{FEWEST_CLUSTERS} are needed for any decision. Judge a fixed number of pictures and leave --until out"
            )
    return groups


def rounds(course: Course, store: Store, workers: int) -> Iterator[list[Shard]]:
    """The shards to do next, enough for all workers. Each round must be done before the next is taken."""
    steps = course.steps
    while course.left:
        looks = _ahead(course, steps, workers)
        yield [
            shard
            for step in range(steps[looks[-1]])
            for one in course.left
            if one.at <= step < len(one.steps)
            for shard in one.needed(one.steps[step])
        ]
        for _ in looks:
            if course.left:
                course.look(store)


def _ahead(course: Course, steps: Sequence[int], workers: int) -> list[int]:
    """The next looks: one, or more where its shards are too few for the workers."""
    first = len(course.pages)
    looks = [first]
    while looks[-1] + 1 < len(steps) and _between(course, steps[looks[-1]]) < workers:
        looks.append(looks[-1] + 1)
    return looks


def _between(course: Course, upto: int) -> int:
    """Shards that are still to come before a step."""
    return sum(len(step) for one in course.left for step in one.steps[one.at : upto])


def _standing(course: Course) -> Iterator[Decision]:
    """Every pair of methods that the run follows: its decision, or where it stands."""
    for one in course.series:
        for metric, contest in one.contests.items():
            tests = course.tests(metric, one)
            rows = [] if tests is None else tests.frame.to_dict("records")
            known = {(row["method_a"], row["method_b"]): row for row in rows}
            for a, b in contest.pairs if contest.followed else ():
                row = known.get((a, b), {})
                yield Decision(
                    one.dataset,
                    one.model,
                    metric,
                    a,
                    b,
                    outcome=row.get("outcome", "open"),
                    look=int(row.get("look", len(course.pages))),
                    pictures=int(row.get("n", 0)),
                    difference=_finite(row.get("mean_difference")),
                    low=_finite(row.get("low")),
                    high=_finite(row.get("high")),
                )


def described(course: Course, finished: bool = True) -> Until:
    """What was decided, when and why the run stopped."""
    pairs = tuple(_standing(course))
    return Until(
        **dataclasses.asdict(course.rule),
        rule=NAME,
        family=len(pairs),
        levels=tuple(course.rule.alpha * share(number) for number in range(1, len(course.pages) + 1)),
        finished=finished,
        stops=tuple(
            Stop(
                one.dataset,
                one.model,
                shards=one.at,
                pictures=len(one.pictures),
                available=len({name for step in one.steps for shard in step for name in shard.ids}),
                looks=tuple(one.looks),
                reason=("decided" if not one.open else "max_images") if one.over else "interrupted",
            )
            for one in course.series
        ),
        pairs=pairs,
        undecided=sum(one.open for one in course.series),
        dropped=tuple(
            Dropped(one.dataset, one.model, metric, method, count)
            for one in course.series
            for metric, contest in one.contests.items()
            for method, count in contest.dropped.items()
        ),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
