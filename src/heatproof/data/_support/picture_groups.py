"""The groups that a data set's pictures fall into, declared by the data set.

*Sampled* groups are a sample of many (patients, lesions, source photos): pictures in a group are correlated, and tests
allow for it. *Fixed* groups are the ones of interest (classes, scenes, objects): a verdict generalises to new pictures
of the same groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable


@dataclass(frozen=True)
class Grouping:
    """One kind of groups: the group of every picture, in the order of `ids()`; None where it is not known."""

    kind: Literal["sampled", "fixed"]
    labels: tuple[str | None, ...]


@runtime_checkable
class Grouped(Protocol):
    """A data set that declares groups. Without groups, pictures count as independent."""

    def groups(self) -> Mapping[str, Grouping]: ...


def groups_of(dataset: object) -> Mapping[str, Grouping]:
    """The groupings that the data set declares, by name."""
    return dataset.groups() if isinstance(dataset, Grouped) else {}


def by_class(labels: Sequence[int], unknown: int = -1) -> dict[str, Grouping]:
    """The classes of pictures as fixed groups; none where no class is known."""
    if all(label == unknown for label in labels):
        return {}
    return {"class": Grouping("fixed", tuple(None if label == unknown else str(label) for label in labels))}
