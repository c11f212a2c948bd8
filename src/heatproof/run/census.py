"""The pictures of a run as a model meets them: how many of each class, how often it is right, the range they fill.

Each shard leaves a record, one entry per picture; `census` adds them up. A score of a model that is wrong on these
pictures, or of one class only, means something else, and no score shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from heatproof.data._support.class_names import plainly
from heatproof.data._support.several_classes import BETWEEN
from heatproof.data._support.value_range import FILLED, spans
from heatproof.models._support.outputs import SIDES
from heatproof.questions import Question
from heatproof.results.run_info import Accuracy, Census
from heatproof.stats.bootstrap import wilson
from heatproof.types import Batch, Model

NAMED = 10  # pictures of little range that are named; the others are counted


@dataclass(frozen=True)
class ShardRecord:
    """The pictures of one shard to its model, one entry each: class, hit or miss, value range, answer."""

    key: str
    ids: tuple[str, ...]
    classes: tuple[str | None, ...]
    right: tuple[bool | None, ...]  # None: not known
    spans: tuple[tuple[float, float], ...]
    predicted: tuple[str | None, ...] = ()  # records of earlier versions have none
    question: Question = "classes"  # what the model is asked
    per_label: bool = False  # entries are labels of pictures, or values

    def __post_init__(self) -> None:
        parts = (self.classes, self.right, self.spans, self.predicted or self.ids)
        if any(len(part) != len(self.ids) for part in parts):
            raise ValueError("a record must have one entry for every picture")


def recorded(
    key: str, model: Model, batch: Batch, answers: Tensor | None, names: Sequence[str], trusted: bool
) -> ShardRecord:
    """Class, hit or miss and value range of every picture.

    `names` are class names of the data set that were numbered in alphabetical order: they are looked up among the
    model's, and where it has none the order is a guess, `trusted` only if the study explains labels.
    """
    if model.several:
        return _of_labels(key, model, batch, answers)
    labels = batch.labels.get(model.task)
    known = [-1] * len(batch) if labels is None else labels.tolist()
    places = {plainly(name): index for index, name in reversed(list(enumerate(model.classes)))}
    looked_up = all(plainly(name) in places for name in names)
    own = [places[plainly(name)] for name in names] if looked_up else list(range(len(names)))
    predicted = None if answers is None or not (looked_up or trusted) else answers.tolist()
    return ShardRecord(
        key,
        tuple(batch.ids),
        tuple(_name(label, names or model.classes) for label in known),
        tuple(
            None if predicted is None or label < 0 else predicted[row] == (own[label] if names else label)
            for row, label in enumerate(known)
        ),
        tuple((low, high) for low, high in spans(batch.images)),
        (None,) * len(batch) if answers is None else tuple(_name(one, model.classes) for one in answers.tolist()),
        model.question,
    )


def _of_labels(key: str, model: Model, batch: Batch, answers: Tensor | None) -> ShardRecord:
    """The same where rows are labels of pictures, or values: whether the model finds each label, and is right."""
    there = batch.labels.get(model.task)
    known = [-1] * len(batch) if there is None or answers is None else there.tolist()
    found = [None] * len(batch) if answers is None else answers.tolist()
    return ShardRecord(
        key,
        tuple(batch.ids),
        tuple(_name(label, model.classes) for label in batch.targets.tolist()),
        tuple(None if one is None or label < 0 else one == label for one, label in zip(found, known, strict=True)),
        tuple((low, high) for low, high in spans(batch.images)),
        tuple(None if one is None else SIDES[one] for one in found),
        model.question,
        per_label=True,
    )


def _name(label: int, names: Sequence[str]) -> str | None:
    if label < 0:
        return None
    return names[label] if label < len(names) else str(label)


@dataclass
class _Count:
    """What is added up for one data set and model."""

    pictures: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    known: int = 0
    right: int = 0
    narrow: dict[str, tuple[float, float]] = field(default_factory=dict)
    question: Question = "classes"
    per_label: bool = False
    shown: set[str] = field(default_factory=set)


def census(records: Iterable[tuple[Mapping[str, str], ShardRecord]]) -> tuple[Census, ...]:
    """One entry per data set and model, from the records of its shards; a picture counts once."""
    entries: dict[tuple[str, str], _Count] = {}
    seen: set[tuple[str, ...]] = set()
    for place, found in records:
        where = (place["dataset"], place["model"])
        entry = entries.setdefault(where, _Count(question=found.question, per_label=found.per_label))
        rows = zip(found.ids, found.classes, found.right, found.spans, strict=True)
        for identity, name, right, (low, high) in rows:
            if (*where, identity) in seen:
                continue
            seen.add((*where, identity))
            entry.pictures += 1
            entry.shown.add(identity.rpartition(BETWEEN)[0] if found.per_label else identity)
            entry.classes.update([] if name is None else [name])
            entry.known += right is not None
            entry.right += bool(right)
            if high - low < FILLED:
                entry.narrow[identity] = (low, high)
    return tuple(_summed(*where, entry) for where, entry in sorted(entries.items(), key=lambda item: item[0]))


def _summed(dataset: str, model: str, entry: _Count) -> Census:
    accuracy = None
    if entry.known:
        share = entry.right / entry.known
        accuracy = Accuracy(share, *wilson(share, entry.known))
    return Census(
        dataset,
        model,
        entry.pictures,
        dict(entry.classes.most_common()),
        entry.known,
        entry.right,
        narrow=dict(list(entry.narrow.items())[:NAMED]),
        narrow_count=len(entry.narrow),
        accuracy=accuracy,
        question=entry.question,
        per_label=entry.per_label,
        distinct=len(entry.shown),
    )
