"""The pace of a run: how long its units take, measured on one picture before the work, and how much time is left."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from heatproof.run.shards import Shard, aimed
from heatproof.run.unit import explain, judge
from heatproof.spec import recipe
from heatproof.traits import cost_of
from heatproof.types import AnyMethod, Cost, Metric, Price

Names: TypeAlias = tuple[str, str]  # of a method and a metric
Unit: TypeAlias = tuple[str, str, str, str, str]  # protocol, data set, model, method, metric
CHEAP = 0.1  # seconds: units that take less are measured on several pictures, as a shard has them
SEVERAL = 8
TRUST = 0.1  # share of the work after which its own pace counts as much as the pace measured before
FEWEST = 12  # pictures from which on measuring one of them first is worth it


@dataclass(frozen=True)
class Progress:
    """The state of a run, for a display."""

    phase: str  # "reading pictures", "checking", "measuring", "judging"
    done: int
    total: int
    label: str = ""  # the last unit
    seconds_left: float | None = None  # None: not known yet
    protocols: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # units done and in all, by protocol


Show: TypeAlias = Callable[[Progress], None]


@dataclass
class Pace:
    """Weighs the units of a run by their seconds, and tells a display what is done and how much time is left.

    The pace measured on one picture counts at first, that of the work itself more and more: the time left changes
    smoothly. Without a measurement units weigh as many passes through the network as they declare.
    """

    show: Show
    fewest: int = FEWEST  # pictures from which on one of them is measured first
    expected: float | None = None  # seconds of the whole work, as measured before it; None: not measured
    clock: Callable[[], float] = time.perf_counter
    _measured: dict[Unit, float] = field(default_factory=dict)

    def begin(self, waiting: Sequence[Shard], todo: Callable[[Shard], Collection[Names]], workers: int) -> None:
        """The work begins: `todo` are the units of a shard that are not done."""
        wanted = [(shard, set(todo(shard))) for shard in waiting]
        pictures = max((sum(len(s.ids) for s in waiting if s.place == one.place) for one in waiting), default=0)
        before = set(self._measured)
        units = len({unit_of(shard, *pair) for shard, names in wanted for pair in names} - before)
        if pictures >= self.fewest:
            for unit, seconds in _measured(wanted, before):
                self._measured[unit] = seconds
                self.show(Progress("measuring", len(self._measured) - len(before), units, f"{unit[-2]} · {unit[-1]}"))
        self._start(wanted, self._measured or None, max(1, min(workers, len(waiting))))

    def _start(
        self, wanted: Sequence[tuple[Shard, set[Names]]], measured: Mapping[Unit, float] | None, workers: int
    ) -> None:
        self._queues: dict[str, deque[tuple[str, float]]] = defaultdict(deque)
        self._by_protocol: dict[str, list[int]] = {}
        self._left = self._gone = 0.0
        self._units = [0, 0]
        declared = {} if measured is not None else passes([shard for shard, _ in wanted])
        for shard, names in wanted:
            for method, metric in shard.units:
                unit = unit_of(shard, method, metric)
                counts = self._by_protocol.setdefault(shard.study.protocol, [0, 0])
                counts[1] += 1
                self._units[1] += 1
                if (method, metric) not in names:
                    counts[0] += 1
                    self._units[0] += 1
                    continue
                each = declared.get(unit, 1.0) if measured is None else measured.get(unit, 0.0)
                weight = each * len(shard.ids)
                self._queues[f"{method} · {metric}"].append((shard.study.protocol, weight))
                self._left += weight
        self._whole = self._left
        self._workers = workers
        self._since = self.clock()
        self.expected = self._left / workers if measured is not None else None
        self.show(self.progress())

    def tick(self, label: str) -> None:
        """A unit is done."""
        queue = self._queues.get(label)
        protocol, weight = queue.popleft() if queue else ("", 0.0)
        self._left = max(0.0, self._left - weight)
        self._gone += weight
        self._units[0] += 1
        self._by_protocol.setdefault(protocol, [0, 0])[0] += 1
        self.show(self.progress(label))

    def progress(self, label: str = "") -> Progress:
        counts = {name: (done, total) for name, (done, total) in self._by_protocol.items() if name}
        done, total = self._units
        return Progress("judging", done, total, label, self.seconds_left, counts)

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end, or None where nothing is known yet."""
        spent = self.clock() - self._since
        if self.expected is None:
            return self._left * spent / self._gone if self._gone > 0 else None
        trusted = TRUST * self._whole
        if not self._whole:
            return 0.0
        # The pace before the work counts like a tenth of the work done at that pace.
        return self._left * (spent + trusted / self._workers) / (self._gone + trusted)


def unit_of(shard: Shard, method: str, metric: str) -> Unit:
    return shard.study.protocol, shard.place["dataset"], shard.place["model"], method, metric


def _measured(
    wanted: Sequence[tuple[Shard, set[Names]]], before: Collection[Unit] = ()
) -> Iterator[tuple[Unit, float]]:
    """Seconds per picture of every unit that is to be done, from the first pictures of the first shard that has it.

    A quick unit comes twice: the second time is the better one.
    """
    known: set[Unit] = set(before)
    for shard, names in wanted:
        new = {pair for pair in names if unit_of(shard, *pair) not in known}
        if not new:
            continue
        known |= {unit_of(shard, *pair) for pair in new}
        quick: set[Names] = set()
        for pair, seconds in _timed(shard, new, 0, 1):
            yield unit_of(shard, *pair), seconds
            if seconds < CHEAP:
                quick.add(pair)
        # Several pictures at once take less than as many single ones, where a network is small.
        many = min(SEVERAL, len(shard.ids) - 1)
        for pair, seconds in _timed(shard, quick, 1, 1 + many) if quick and many > 0 else ():
            yield unit_of(shard, *pair), seconds


def _timed(shard: Shard, names: Collection[Names], start: int, stop: int) -> Iterator[tuple[Names, float]]:
    """Seconds per picture of some units of a shard, on some of its pictures. Nothing of it is kept."""
    some = dataclasses.replace(shard, indices=shard.indices[start:stop], ids=shard.ids[start:stop])
    batch, _ = aimed(some)
    if not len(batch):
        return
    for method, metrics in _by_method(shard, names).items():
        began = time.perf_counter()
        explained = explain(shard.model, batch, method)
        for metric in metrics:
            judge(explained, batch, batch.ids, metric)
            now = time.perf_counter()
            yield (recipe.label(method), recipe.label(metric)), (now - began) / len(batch)
            began = now


def _by_method(shard: Shard, names: Collection[Names]) -> dict[AnyMethod, list[Metric]]:
    found: dict[AnyMethod, list[Metric]] = {}
    for method in shard.methods:
        metrics = [one for one in shard.study.metrics if (recipe.label(method), recipe.label(one)) in names]
        if metrics:
            found[method] = metrics  # type: ignore[index,assignment]
    return found


def passes(work: Sequence[Shard]) -> dict[Unit, float]:
    """Passes per picture that units declare, a backward one counted twice; those that declare none count as typical."""
    found: dict[Unit, float] = {}
    for shard in {(s.study, s.place["dataset"], s.place["model"]): s for s in work}.values():
        costs = [cost_of(method) for method in shard.study.methods]
        own = [cost.forward + 2 * cost.backward if isinstance(cost, Cost) else None for cost in costs]
        prices = [cost_of(metric) for metric in shard.study.metrics]
        priced = [price for price in prices if isinstance(price, Price)]
        usual = Price(*(_middle([one[at] for one in priced]) for at in range(3)))
        typical = _middle([cost for cost in own if cost is not None])
        for method, cost in zip(shard.study.methods, own, strict=True):
            each = typical if cost is None else cost
            for at, metric in enumerate(shard.study.metrics):
                price = prices[at] if isinstance(prices[at], Price) else usual
                judged = price.forward + price.shared / len(costs) + price.explanations * each
                explained = each if at == 0 else 0.0
                found[unit_of(shard, recipe.label(method), recipe.label(metric))] = 1.0 + explained + judged
    return found


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0
