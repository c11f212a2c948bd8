"""Decisions on every pair of methods of one comparison, taken while pictures come in.

A unit is the mean paired difference of at least `unit` pictures, in the order in which they come, or of whole clusters
with as many pictures; of hits and misses it is a single picture. The sequences hold at every look at once, so the work
may stop at any of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from heatproof.errors import BadInput
from heatproof.stats.sequential import SHARD, Outcome, empirical_bernstein, mixture_scale, outcomes, t_mixture

TUNED = 30.0  # units at which the t-mixture is narrowest


@dataclass(frozen=True)
class Decision:
    """What is known of one pair at the last look that counts: differences are first − second, as scored."""

    first: str
    second: str
    outcome: Outcome  # better: the first method is
    units: int
    pictures: int  # with scores of both, in these units
    difference: float
    low: float
    high: float


@dataclass
class _Differences:
    """The paired differences of two methods, cut into units."""

    unit: int
    units: list[float] = field(default_factory=list)
    pictures: int = 0
    _waiting: list[float] = field(default_factory=list)
    _cluster: Hashable = None

    def add(self, difference: float | None, cluster: Hashable) -> None:
        """The next picture; `cluster` is None where pictures are independent. No unit ends within a cluster."""
        if cluster is None or cluster != self._cluster:
            self._close()
        self._cluster = cluster
        if difference is not None and np.isfinite(difference):
            self._waiting.append(difference)
        if cluster is None:
            self._close()

    def _close(self) -> None:
        if len(self._waiting) >= self.unit:
            self.units.append(float(np.mean(self._waiting)))
            self.pictures += len(self._waiting)
            self._waiting = []


@dataclass
class Comparison:
    """All pairs of methods under one metric, model and data set, each followed until it is decided.

    In a race a method that another one beats is dropped: it cannot be the best. `level` is alpha of one pair and stays
    what it was, whoever has left.
    """

    methods: Sequence[str]
    level: float
    margin: float = 0.0
    unit: int = SHARD
    hits: bool = False  # scores of 0 and 1
    higher_is_better: bool = True
    race: bool = False
    decided: dict[tuple[str, str], Decision] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)  # method -> pictures it was judged on
    pictures: int = 0
    _pairs: dict[tuple[str, str], _Differences] = field(default_factory=dict)
    _scored: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not self.hits and self.unit < SHARD:
            raise BadInput(f"a unit needs at least {SHARD} pictures, got {self.unit}: means of fewer are too skewed.")

    def add(
        self,
        pictures: Sequence[str],
        scores: Mapping[str, Mapping[str, float | None]],
        clusters: Mapping[str, Hashable] | None = None,
    ) -> None:
        """The next pictures in their order, with scores by method and picture, and one look at every open pair."""
        self.pictures += len(pictures)
        self._scored |= {name for name in self.methods if any(v is not None for v in scores.get(name, {}).values())}
        for a, b in self._followed():
            alone = self.hits and clusters is None
            pair = self._pairs.setdefault((a, b), _Differences(1 if alone else self.unit))
            of_a, of_b = scores.get(a, {}), scores.get(b, {})
            for picture in pictures:
                x, y = of_a.get(picture), of_b.get(picture)
                cluster = None if clusters is None else clusters[picture]
                pair.add(None if x is None or y is None else x - y, cluster)
            found = self._look(a, b)
            if found.outcome != "open":
                self.decided[a, b] = found
        if self.race:
            for method in self.methods:
                if method not in self.running and method not in self.dropped:
                    self.dropped[method] = self.pictures

    def _followed(self) -> list[tuple[str, str]]:
        left = set(self.running) if self.race else set(self.methods)
        return [(a, b) for a, b in self.pairs if (a, b) not in self.decided and {a, b} <= left]

    def _look(self, a: str, b: str) -> Decision:
        pair = self._pairs.get((a, b), _Differences(self.unit))
        if not pair.units:
            return Decision(a, b, "open", 0, 0, float("nan"), float("-inf"), float("inf"))
        column = np.array(pair.units)[:, None]
        if self.hits:
            centre, half = empirical_bernstein(column, self.level, -1, 1)
        else:
            centre, half = t_mixture(column, self.level, mixture_scale(TUNED, self.level))
        outcome: Outcome = outcomes(centre[-1:], half[-1:], self.margin)[0, 0].item()
        if not self.higher_is_better and outcome in ("better", "worse"):
            outcome = "worse" if outcome == "better" else "better"
        middle, width = float(centre[-1, 0]), float(half[-1, 0])
        return Decision(a, b, outcome, len(pair.units), pair.pictures, middle, middle - width, middle + width)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.methods, 2))

    @property
    def running(self) -> list[str]:
        """The methods that none has been shown to beat."""
        beaten = {
            b if found.outcome == "better" else a
            for (a, b), found in self.decided.items()
            if found.outcome != "equivalent"
        }
        return [method for method in self.methods if method not in beaten]

    @property
    def open(self) -> list[tuple[str, str]]:
        """The pairs that keep the work going. A method without any score so far holds nothing up."""
        scored = self._scored if self.pictures else set(self.methods)
        return [(a, b) for a, b in self._followed() if {a, b} <= scored]

    def standing(self) -> list[Decision]:
        """Every pair: its decision, or where it stands."""
        return [self.decided.get(pair) or self._look(*pair) for pair in self.pairs]
