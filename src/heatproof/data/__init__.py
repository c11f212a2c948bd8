"""Data sets: `load(spec)` makes one from a folder, a table or a registered name.

two_factor, two_factor(seed=3)      a registered data set, its fields set as in Python
path/to/pictures                    a folder, flat or one sub-folder per class
path/to/both                        a folder with `images` and `masks` in it, or HAM10000 as published
path/to/table.csv                   path,label[,mask]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from heatproof.data._support.pictures import takes_grey
from heatproof.errors import BadInput, UnknownName
from heatproof.spec.parse import parse
from heatproof.storage import any_path
from heatproof.traits import dataset_traits
from heatproof.types import Dataset, Model, View


def load(spec: str, masks: str = "", view: View | None = None, classes: Sequence[str] = ()) -> Dataset:
    """The data set a spec names.

    `masks` is a folder of masks named like the pictures; `view` and `classes` (the model's) apply to files
    only.
    """
    if not isinstance(spec, str) or not spec.strip():
        raise BadInput(f"a data set must be a folder, a .csv file or a registered name, got {spec!r}")
    spec = spec.strip()
    path = any_path.expanded(spec)
    if path.suffix.lower() == ".csv":
        from heatproof.data.table import Table

        return _alone(Table(str(path), view, tuple(classes)), masks)
    if any_path.is_dir(path):
        return _of_folder(spec, path, masks, view, tuple(classes))
    return _alone(_registered(spec), masks)


def _of_folder(spec: str, path: Path, masks: str, view: View | None, classes: tuple[str, ...]) -> Dataset:
    from heatproof.data.folder import Folder
    from heatproof.data.ham10000 import HAM10000, METADATA
    from heatproof.data.masked_folder import MaskedFolder

    if masks or ((path / "images").is_dir() and (path / "masks").is_dir()):
        return MaskedFolder(spec, view, classes, masks=masks)
    if (path / METADATA).is_file():
        return HAM10000(spec, view)
    return Folder(spec, view, classes)


def _alone(found: Dataset, masks: str) -> Dataset:
    if masks:
        raise BadInput(f"masks belong to a folder of pictures; {found.name!r} has its own masks or none")
    return found


def _registered(spec: str) -> Dataset:
    if not spec.partition("(")[0].replace("_", "").isalnum():  # so it is a path
        raise BadInput(f"there is no folder {spec}: name a folder of pictures, a .csv file or a registered data set")
    try:
        found = parse("dataset", spec)
    except UnknownName as error:
        raise UnknownName(f"{error} Nor is there a folder of that name.") from error
    if not isinstance(found, Dataset):
        raise BadInput(f"{spec!r} must make a data set, got {type(found).__name__}")
    return found


def in_grey(dataset: Dataset) -> Dataset:
    """The data set with its picture files read in one channel, nested data sets included; others unchanged."""
    traits = dataset_traits(dataset)
    if traits.grey is False:
        return dataclasses.replace(dataset, grey=True)  # type: ignore[type-var]
    return dataset if traits.of is None else dataclasses.replace(dataset, of=in_grey(traits.of))  # type: ignore[type-var]


def between(dataset: Dataset, levels: Any) -> Dataset:
    """The data set with these values as black and white, nested data sets included; refused where it has no files."""
    traits = dataset_traits(dataset)
    if traits.levels is not ...:
        return dataclasses.replace(dataset, levels=levels)  # type: ignore[type-var]
    if traits.of is None:
        raise BadInput(f"the pictures of {dataset.name!r} have a value range of their own: leave --value-range out")
    return dataclasses.replace(dataset, of=between(traits.of, levels))  # type: ignore[type-var]


def seen_by(model: Model, dataset: Dataset) -> Dataset:
    """The data set as this model needs it: pictures from disk are cut as the model's source declares, if it does, and
    read in one channel if the model takes only one.
    """
    dataset = in_grey(dataset) if takes_grey(model) else dataset
    traits = dataset_traits(dataset)
    if traits.fitted is not None:  # data sets made of others have their own rule
        return traits.fitted(model)  # type: ignore[no-any-return]
    if traits.uncut and model.view is not None:
        return dataclasses.replace(dataset, view=model.view)  # type: ignore[type-var]
    return dataset


def named_by(model: Model, dataset: Dataset) -> Dataset:
    """The data set with the model's classes where its labels are to be numbered as the model does."""
    if model.classes and dataset_traits(dataset).unnamed:
        return dataclasses.replace(dataset, classes=model.classes)  # type: ignore[type-var]
    return dataset


def check_labels(labels: Tensor, classes: int, ids: Sequence[str]) -> None:
    """Raises `BadInput` if a true class is not one of the model's; -1 means unknown."""
    outside = ((labels < -1) | (labels >= classes)).nonzero().flatten().tolist()
    if outside:
        first = outside[0]
        raise BadInput(
            f"labels must lie in 0 … {classes - 1}, the classes of the model, got {int(labels[first])} for "
            f"{ids[first]!r}: number the classes as the model does, or name the folders index_name"
        )
