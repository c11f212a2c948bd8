"""Pictures judged label by label: one row per picture and label, whose id carries the label."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from heatproof.data._support.carried import Carried
from heatproof.data._support.class_names import plainly
from heatproof.data._support.files import UNKNOWN
from heatproof.data._support.picture_groups import Grouping, groups_of
from heatproof.data._support.several_classes import BETWEEN, entry_id
from heatproof.traits import dataset_traits, present_of
from heatproof.types import Batch, Dataset

Present = tuple[Carried | None, ...]  # the labels of each picture; None where they are not known
Row = tuple[int, int]  # index of the picture, label


def present_in(dataset: Any) -> Present:
    """The labels that each picture of a data set carries: several, the one of its folder, or none known."""
    several = present_of(dataset)
    if several is not None:
        found: Present = several()
        return found
    known = dataset_traits(dataset).class_labels
    labels = known() if known is not None else (UNKNOWN,) * len(dataset)
    return tuple(None if label == UNKNOWN else Carried(frozenset((label,)), others=UNKNOWN) for label in labels)


@dataclass(frozen=True)
class PerLabel:
    """One row for each of these pairs of a picture and a label.

    Rows of one picture are no independent samples: the picture is a sampled group. The label is a fixed one.
    """

    of: Dataset
    rows: tuple[Row, ...]
    names: tuple[str, ...]  # of all labels
    task: str
    present: Present

    target = "given"  # each row knows its own

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def view(self) -> Any:
        view = dataset_traits(self.of).view
        return None if view is ... else view

    def __len__(self) -> int:
        return len(self.rows)

    def ids(self) -> tuple[str, ...]:
        return tuple(self._of(range(len(self.rows))))

    def class_labels(self) -> tuple[int, ...]:
        return tuple(label for _, label in self.rows)

    def groups(self) -> Mapping[str, Grouping]:
        pictures = [picture for picture, _ in self.rows]
        inherited = {
            name: dataclasses.replace(one, labels=tuple(one.labels[picture] for picture in pictures))
            for name, one in groups_of(self.of).items()
            if name != "class"
        }
        labels = Grouping("fixed", tuple(self._name(label) for _, label in self.rows))
        again = len(set(pictures)) < len(pictures)
        own = {"picture": Grouping("sampled", tuple(self._ids[picture] for picture in pictures))} if again else {}
        return {**own, **inherited, "label": labels}

    def batch(self, indices: Sequence[int], /) -> Batch:
        """The rows' pictures, each read once, with the label as target and whether it is there (1, 0 or -1)."""
        rows = [self.rows[index] for index in indices]
        pictures = list(dict.fromkeys(picture for picture, _ in rows))
        read = self.of.batch(pictures)
        place = {identity: at for at, identity in enumerate(read.ids)}
        ids = dict(zip(indices, self._of(indices), strict=True))
        there = [index for index in indices if self._ids[self.rows[index][0]] in place]
        batch = read.select([place[self._ids[self.rows[index][0]]] for index in there])
        labels = torch.tensor([self._there(*self.rows[index]) for index in there], dtype=torch.int64)
        lost = {ids[i]: read.missing[own] for i in indices if (own := self._ids[self.rows[i][0]]) in read.missing}
        return dataclasses.replace(
            batch,
            targets=torch.tensor([self.rows[index][1] for index in there], dtype=torch.int64),
            ids=tuple(ids[index] for index in there),
            labels={**batch.labels, self.task: labels},
            missing=lost,
        )

    def digest(self, indices: Sequence[int], /) -> str:
        rows = [self.rows[index] for index in indices]
        own = self.of.digest([picture for picture, _ in rows])
        return hashlib.sha256(f"{own} {[label for _, label in rows]}".encode()).hexdigest()

    def _of(self, indices: Sequence[int]) -> list[str]:
        return [self._id(*self.rows[index]) for index in indices]

    def _id(self, picture: int, label: int) -> str:
        own, name = self._ids[picture], self._name(label)
        listed = own.rpartition(BETWEEN)[2]  # the data set may list a picture once for each label already
        return own if plainly(listed) == plainly(name) else entry_id(own, name)

    @cached_property
    def _ids(self) -> tuple[str, ...]:
        return self.of.ids()

    def _there(self, picture: int, label: int) -> int:
        known = self.present[picture]
        return UNKNOWN if known is None else known.has(label)

    def _name(self, label: int) -> str:
        return self.names[label] if label < len(self.names) else str(label)
