"""Mosaics: pictures of the target class beside pictures of other classes, so that the answer's place is known."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.data import check_labels, in_grey, named_by
from heatproof.data._support.files import as_view
from heatproof.data._support.mosaic_plan import Laid, draw, labels_of, layouts, pools_of
from heatproof.data._support.picture_groups import Grouping
from heatproof.data._support.pictures import takes_grey
from heatproof.data._support.shared_tiles import by_sources, sources_of
from heatproof.data.two_factor import OBJECTS, SCENES
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.spec.recipe import spelt
from heatproof.traits import dataset_traits
from heatproof.types import Batch, Dataset, Images, Keep, Model, View


def tiled(pictures: Tensor, grid: int) -> Tensor:
    """(B, grid², C, H, W) to (B, C, grid · H, grid · W), row by row."""
    count, _, channels, height, width = pictures.shape
    rows = pictures.view(count, grid, grid, channels, height, width).permute(0, 3, 1, 4, 2, 5)
    return rows.reshape(count, channels, grid * height, grid * width)


def target_regions(labels: Tensor, targets: Tensor, height: int, width: int) -> Keep:
    """(B, grid²) classes to (B, H, W): True on the tiles that show the target."""
    grid = int(labels.shape[1] ** 0.5)
    shown = (labels == targets[:, None]).view(-1, grid, grid)
    rows, columns = (torch.arange(side) * grid // side for side in (height, width))
    return shown[:, rows][:, :, columns]


def _read(path: str | Path) -> Mapping[str, Any]:
    try:
        stored_plan: Mapping[str, Any] = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} must be a plan of mosaics in JSON, got: {error}") from error
    return stored_plan


def _check_plan(laid: Sequence[Laid], grid: Any) -> None:
    """Raises `BadInput` unless an external plan is valid."""
    if type(grid) is not int:
        raise BadInput(f"grid of a plan must be the number of tiles per side, got {grid!r}")
    if not laid or any(len(m.pictures) != grid**2 or len(m.labels) != grid**2 for m in laid):
        raise BadInput(f"every mosaic of the plan must hold {grid**2} pictures and labels")
    for at, mosaic in enumerate(laid):
        strange = [label for label in (mosaic.target, *mosaic.labels) if type(label) is not int]
        if strange:
            raise BadInput(f"target and labels of a plan must be class numbers, got {strange[0]!r} in mosaic {at}")
        if mosaic.target not in mosaic.labels:
            raise BadInput(
                f"the target of a mosaic must be among its labels, got {mosaic.target} and "
                f"{', '.join(map(str, mosaic.labels))} in mosaic {at}"
            )


@dataset
@dataclass(frozen=True)
class Mosaic:
    """Mosaics of any labelled pictures: half of the tiles show the class to be explained, the others do not.

    Paper: Fresz et al. 2024, "Classification Metrics for Image Explanations: Towards Building Reliable
    XAI-Evaluations"

    A 2×2 mosaic has twice the side of its pictures; `resize` shrinks it to the side of one, for networks that
    take one size only. `laid` is a stored plan (`plan`, `from_plan`); without one it is drawn from the seed.
    """

    target: ClassVar[Literal["given"]] = "given"  # the mosaic's class is explained, whatever the prediction

    takes_turns: ClassVar[bool] = True  # of the classes: the first pictures show them about equally often

    of: Dataset = field(default_factory=TwoFactor)
    between: tuple[int, ...] = ()  # the classes in the mosaics; all if empty
    per_class: int = 10
    grid: int = 2
    seed: int = 0
    task: str | None = None  # the label that holds the class: `label` of files, `object` or `scene` embedded
    resize: bool = False
    title: str = ""  # its name in tables
    view: View | None = None  # how pictures from disk are cut: the model's own if None
    laid: tuple[Laid, ...] = ()
    apart: bool = False  # no picture in two mosaics, as far as there are enough

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", as_view(self.view))
        object.__setattr__(self, "between", tuple(self.between))
        object.__setattr__(self, "laid", tuple(Laid(t, tuple(p), tuple(c)) for t, p, c in self.laid))
        layouts(self.grid)  # raises for an unknown grid
        if self.per_class < 1:
            raise BadInput(f"per_class must be at least 1 mosaic, got {self.per_class}")

    @property
    def name(self) -> str:
        return self.title or spelt(dataclasses.replace(self, view=None, laid=()))

    def fitted(self, model: Model) -> Mosaic:
        """These mosaics as the model needs them; raises `BadInput` if it cannot take them or lacks their classes."""
        made = self.cut_for(model)
        made._check_classes(model)
        return made

    def cut_for(self, model: Model) -> Mosaic:
        """The same mosaics of pictures cut and numbered for the model, without checks."""
        if model.fixed_size and not self.resize:
            side = "×".join(map(str, model.view.sides[::-1])) if model.view else "one size of"
            raise BadInput(
                f"model {model.name!r} takes {side} pixels only, and a {self.grid}×{self.grid} mosaic has "
                f"{self.grid} times the side: set resize=True to shrink it, or take a network for any size"
            )
        of = in_grey(self.of) if takes_grey(model) else self.of
        of = named_by(model, of)
        view = self.view
        if dataset_traits(of).uncut and view is None:
            if model.view is None:
                raise BadInput(
                    f"model {model.name!r} does not say which input size it wants and {of.name!r} has none: "
                    "give the mosaic a view, e.g. view=heatproof.View(size=224, resize=256)"
                )
            view = model.view
        return dataclasses.replace(self, of=of, view=view)

    def _check_classes(self, model: Model) -> None:
        """Raises if the model lacks a class or numbers it differently, which would still give scores."""
        task = self.task or self._task
        by_name = bool(model.classes) and self._class_names(task) == tuple(model.classes)
        if task != model.task and not by_name:
            raise BadInput(
                f"model {model.name!r} names classes of the task {model.task!r}, and these mosaics are laid by "
                f"{task!r}: say which label of the pictures holds its classes, mosaic(of=…, task={model.task}), or "
                f"take a model for {task!r}"
            )
        count = len(model.classes) or self._outputs(model)
        labels = torch.tensor([mosaic.labels for mosaic in self.mosaics], dtype=torch.int64).flatten()
        if count:
            check_labels(labels, count, [picture for mosaic in self.mosaics for picture in mosaic.pictures])

    def _class_names(self, task: str) -> tuple[str, ...]:
        if isinstance(self.of, TwoFactor):
            return {"object": OBJECTS, "scene": SCENES}.get(task, ())
        return tuple(dataset_traits(self.of).classes or ())

    def _outputs(self, model: Model) -> int:
        """The number of the model's outputs, from a forward pass; 0 if the first mosaic cannot be shown."""
        first = self.batch([0]).to(model.device)
        with torch.no_grad():
            return model(first.images).shape[1] if len(first) else 0

    @cached_property
    def pictures(self) -> Dataset:
        """The pictures of the mosaics, cut as they are shown."""
        if self.view is not None and dataset_traits(self.of).uncut:
            return dataclasses.replace(self.of, view=self.view)  # type: ignore[type-var]
        return self.of

    @cached_property
    def _labelled(self) -> tuple[str, dict[str, int]]:
        return labels_of(self.pictures, self.task)

    @cached_property
    def mosaics(self) -> tuple[Laid, ...]:
        """The plan: which picture stands where."""
        if self.laid:
            return self.laid
        return draw(pools_of(self._labelled[1], self.between), self.per_class, self.grid, self.seed, self.apart)

    def plan(self) -> dict[str, Any]:
        """The plan as plain data, for storage: `Mosaic.from_plan` makes the same mosaics again, bit for bit."""
        rows = [{"target": m.target, "pictures": list(m.pictures), "labels": list(m.labels)} for m in self.mosaics]
        return {"heatproof_mosaics": 1, "grid": self.grid, "mosaics": rows}

    @classmethod
    def from_plan(cls, stored: Mapping[str, Any] | str | Path, of: Dataset, **fields: Any) -> Mosaic:
        """Mosaics of a stored plan: from `plan()`, or a JSON file of it."""
        stored_plan = _read(stored) if isinstance(stored, str | Path) else stored
        try:
            laid = tuple(Laid(m["target"], tuple(m["pictures"]), tuple(m["labels"])) for m in stored_plan["mosaics"])
            grid = stored_plan["grid"]
        except (KeyError, TypeError) as error:
            raise BadInput(
                f"a plan of mosaics must hold grid and mosaics (target, pictures, labels), but lacks {error}"
            ) from error
        _check_plan(laid, grid)
        return cls(of=of, grid=grid, laid=laid, **fields)

    def __len__(self) -> int:
        return len(self.mosaics)

    def ids(self) -> tuple[str, ...]:
        """The number, the class and where it stands: `0007-class3-TDDT`."""
        return tuple(
            f"{i:04d}-class{m.target}-{''.join('T' if label == m.target else 'D' for label in m.labels)}"
            for i, m in enumerate(self.mosaics)
        )

    def groups(self) -> Mapping[str, Grouping]:
        """Classes, fixed; mosaics that share source photos, sampled."""
        names = self._class_names(self.task or self._task)
        targets = [mosaic.target for mosaic in self.mosaics]
        shown = tuple(names[target] if target < len(names) else str(target) for target in targets)
        tiles = [mosaic.pictures for mosaic in self.mosaics]
        return {"class": Grouping("fixed", shown), **by_sources(tiles, sources_of(self.pictures))}

    def digest(self, indices: Sequence[int], /) -> str:
        content: list[Any] = [self.grid, self.resize, self.task]
        for mosaic in (self.mosaics[i] for i in indices):
            content += [mosaic.target, mosaic.labels, self.pictures.digest(self._places(mosaic))]
        return hashlib.sha256(repr(content).encode()).hexdigest()[:32]

    def batch(self, indices: Sequence[int], /) -> Batch:
        ids = self.ids()
        wanted = [self.mosaics[i] for i in indices]
        places = sorted({place for mosaic in wanted for place in self._places(mosaic)})
        tiles = self.pictures.batch(places)
        row = {identity: at for at, identity in enumerate(tiles.ids)}
        missing, kept = {}, []
        for index, mosaic in zip(indices, wanted, strict=True):
            lost = [picture for picture in mosaic.pictures if picture not in row]
            if lost:
                missing[ids[index]] = f"{lost[0]}: {tiles.missing.get(lost[0], 'cannot be read')}"
            else:
                kept.append((index, mosaic))
        rows = torch.tensor([[row[p] for p in mosaic.pictures] for _, mosaic in kept], dtype=torch.int64)
        shown = tiles.images[rows.view(-1, self.grid**2)]
        images = self._sized(tiled(shown, self.grid), tiles.images)
        targets = torch.tensor([mosaic.target for _, mosaic in kept], dtype=torch.int64)
        classes = torch.tensor([mosaic.labels for _, mosaic in kept], dtype=torch.int64)
        return Batch(
            images=images,
            targets=targets,
            ids=tuple(ids[index] for index, _ in kept),
            regions=target_regions(classes.view(-1, self.grid**2), targets, *images.shape[2:]),
            labels={self.task or self._task: targets},
            missing=missing,
        )

    @property
    def _task(self) -> str:
        return self._labelled[0]

    def _sized(self, mosaics: Images, pictures: Images) -> Images:
        if not self.resize or not len(mosaics):
            return mosaics
        size = tuple(pictures.shape[2:])
        return F.interpolate(mosaics, size, mode="bilinear", antialias=True).clamp(0, 1)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {identity: at for at, identity in enumerate(self.pictures.ids())}

    def _places(self, mosaic: Laid) -> list[int]:
        absent = [picture for picture in mosaic.pictures if picture not in self._index]
        if absent:
            raise BadInput(f"the plan needs the picture {absent[0]!r}, which {self.of.name!r} does not hold")
        return [self._index[picture] for picture in mosaic.pictures]
