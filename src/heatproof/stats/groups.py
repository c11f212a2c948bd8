"""The groups that pictures fall into, each of one of two kinds: sampled or fixed.

*Sampled* groups (patients, source photos, bursts) are a sample of many: pictures of one group are alike, and every test
allows for it. *Fixed* groups (classes, scenes, objects) are the ones of interest: a verdict speaks first for new
pictures of these same groups, and only then of groups that were not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.errors import BadInput

Kind = Literal["sampled", "fixed"]
KINDS: tuple[Kind, ...] = ("sampled", "fixed")


@dataclass(frozen=True, eq=False)
class Groups:
    """One row per picture (the index holds its id) and a column per kind of groups."""

    labels: pd.DataFrame
    kinds: Mapping[str, Kind]

    def __post_init__(self) -> None:
        if set(self.labels.columns) != set(self.kinds):
            raise BadInput(
                f"every column of groups needs a kind, {' or '.join(KINDS)}: got columns "
                f"{', '.join(map(str, self.labels.columns))} and kinds for {', '.join(self.kinds)}."
            )
        wrong = {name: kind for name, kind in self.kinds.items() if kind not in KINDS}
        if wrong:
            raise BadInput(f"groups are {' or '.join(KINDS)}, got {', '.join(f'{k}: {v}' for k, v in wrong.items())}.")
        if self.labels.index.has_duplicates:
            raise BadInput("groups need one row per picture: some picture has several.")

    def of(self, pictures: Sequence[str] | pd.Index) -> Groups:
        """The same groups for these pictures, in their order; a picture without a label has none."""
        return Groups(self.labels.reindex(pd.Index(pictures)), self.kinds)

    def named(self, kind: Kind) -> list[str]:
        """The columns of a kind in which at least two pictures share a group, and not all of them do."""
        return [name for name in self.labels.columns if self.kinds[name] == kind and _groups_anything(self.codes(name))]

    def codes(self, name: str) -> NDArray[np.int64]:
        """Groups as 0 … k−1. Sampled: a picture without a label is a group by itself. Fixed: these are one group."""
        codes, labels = pd.factorize(self.labels[name])
        found = codes.astype(np.int64)
        unknown = found < 0
        if unknown.any():
            alone = np.arange(unknown.sum()) if self.kinds[name] == "sampled" else 0
            found[unknown] = len(labels) + alone
        return found

    def clusters(self) -> dict[str, NDArray[np.int64]]:
        """The sampled groups that tests must allow for, by name: those not nested in others, each as 0 … k−1."""
        codes = outermost({name: self.codes(name) for name in self.named("sampled")})
        numbered = {name: np.unique(index, return_inverse=True)[1].ravel() for name, index in codes.items()}
        return {name: index.astype(np.int64) for name, index in numbered.items()}

    def by_cluster(self, table: pd.DataFrame, fixed: str) -> tuple[pd.DataFrame, NDArray[np.object_]] | None:
        """Rows that are independent, with their fixed group: pictures, or means of the sampled groups they fall into.

        The table is of these pictures in their order. None where sampled groups cross each other or the fixed ones.
        """
        labels = self.labels[fixed].to_numpy(dtype=object)
        clusters = list(self.clusters().values())
        if not clusters:
            return table, labels
        if len(clusters) > 1 or not _lies_in(clusters[0], self.codes(fixed)):
            return None
        first = np.unique(clusters[0], return_index=True)[1]
        return table.groupby(clusters[0]).mean(), labels[first]


def outermost(clusterings: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """The clusterings not nested in another one: bursts within patients need the patients only."""
    kept = dict(clusterings)
    for name in clusterings:
        if any(_lies_in(kept[name], kept[other]) for other in kept if other != name):
            del kept[name]
    return kept


def _lies_in(inner: NDArray[np.int64], outer: NDArray[np.int64]) -> bool:
    pairs = np.unique(np.stack([inner, outer]), axis=1)
    return int(pairs.shape[1]) == len(np.unique(inner))


def _groups_anything(codes: NDArray[np.int64]) -> bool:
    return 1 < len(np.unique(codes)) < len(codes)
