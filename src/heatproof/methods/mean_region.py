"""The mean region: where the objects of a data set usually are. A blind control that knows the data set alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.data._support.picture_groups import groups_of
from heatproof.errors import NotApplicable
from heatproof.methods._support.field_checks import check_count
from heatproof.occlusion.imputers.train_set import pool
from heatproof.registry import method
from heatproof.spec.recipe import spelt
from heatproof.traits import Need
from heatproof.types import Batch, Cost, Dataset, Maps, Model

CHUNK = 32  # pictures read at once


@lru_cache(maxsize=4)
def _regions(dataset: Any, revision: str, count: int) -> tuple[tuple[str, ...], Tensor]:
    """Ids and regions, (n, H, W) bool, of some pictures of the data set."""
    places = pool(len(dataset), count)
    parts = [dataset.batch(places[at : at + CHUNK]) for at in range(0, len(places), CHUNK)]
    known = [part for part in parts if len(part) and part.regions is not None]
    if not known:
        raise NotApplicable(
            "mean_region is the mean of a data set's regions, and this one has none: give masks, as "
            "`heatproof run --masks FOLDER` or in the column mask of a CSV"
        )
    return tuple(name for part in known for name in part.ids), torch.cat([part.regions.cpu() for part in known])


@method
@dataclass(frozen=True)
class MeanRegion:
    """The mean of the regions of other pictures of the same data set: where the object usually is.

    It is drawn without the picture that is judged and those that share a sampled group with it (a patient, a source
    photo). In a run the data set is the one that is judged; elsewhere name it as `of`.
    """

    control: ClassVar[bool] = True
    blind: ClassVar[bool] = True
    signed: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = ("regions",)

    of: Any = None  # the data set, as the model sees it
    count: int = 200  # pictures whose regions are averaged, drawn among all of the data set

    def __post_init__(self) -> None:
        check_count("count", self.count)

    @property
    def label(self) -> str:
        return spelt(dataclasses.replace(self, of=None))

    @cached_property
    def revision(self) -> str:
        """A hash of the pictures whose regions are averaged."""
        return "" if self.of is None else str(self.of.digest(pool(len(self.of), self.count)))

    def for_dataset(self, dataset: Dataset) -> MeanRegion:
        """The control of the data set that is judged."""
        return self if self.of is not None else dataclasses.replace(self, of=dataset)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        if self.of is None:
            raise NotApplicable("mean_region needs the data set that the pictures belong to: mean_region(of=…)")
        names, regions = _regions(self.of, self.revision, self.count)
        maps = [self._without(identity, names, regions) for identity in batch.ids]
        size = batch.images.shape[2:]
        found = torch.stack(maps) if maps else torch.zeros(0, *size)
        if found.shape[1:] != size:
            found = F.interpolate(found[:, None], size, mode="bilinear", antialias=True)[:, 0]
        return found.to(batch.images)

    def _without(self, identity: str, names: tuple[str, ...], regions: Tensor) -> Tensor:
        """The mean over the pictures that tell nothing of this one."""
        mine = self._kin.get(identity, frozenset())
        others = [at for at, name in enumerate(names) if name != identity and not mine & self._kin[name]]
        if not others:
            raise NotApplicable(f"mean_region needs another picture with a region beside {identity!r}, got none")
        return regions[others].float().mean(0)

    @cached_property
    def _kin(self) -> dict[str, frozenset[tuple[str, str]]]:
        """The sampled groups that each picture falls into."""
        found: dict[str, set[tuple[str, str]]] = {name: set() for name in self.of.ids()}
        for kind, one in groups_of(self.of).items():
            for name, label in zip(self.of.ids(), one.labels, strict=True):
                if one.kind == "sampled" and label is not None:
                    found[name].add((kind, label))
        return {name: frozenset(labels) for name, labels in found.items()}

    def cost(self) -> Cost:
        return Cost(0, 0)
