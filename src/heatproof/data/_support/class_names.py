"""Which class a name means: `239_Bernese_mountain_dog`, `Bernese mountain dog` or simply the k-th of some
folders."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Sequence

from heatproof.data._support.files import numbered
from heatproof.errors import BadInput, UnknownName

_INDEXED = re.compile(r"(\d{1,9})(?:[_\-. ].*)?")


def are_indices(names: Collection[str]) -> bool:
    """Whether every name starts with an index, as `239_Bernese_mountain_dog` and `239` do."""
    return all(_INDEXED.fullmatch(name) for name in names)


def class_indices(names: Sequence[str], classes: Sequence[str] = ()) -> dict[str, int]:
    """A class index for every name.

    If every name starts with a number, as in `239_Bernese_mountain_dog`, that is the index. Otherwise names
    are looked up in `classes` (ignoring case, and `_` for a space), or, where no classes are known, numbered
    alphabetically.
    """
    indexed = {name: _INDEXED.fullmatch(name) for name in names}
    if all(indexed.values()):
        indices = {name: int(found.group(1)) for name, found in indexed.items() if found}
        for name, index in indices.items():
            if classes and index >= len(classes):
                raise BadInput(
                    f"class {name!r} must have an index in 0 … {len(classes) - 1}, the classes of the "
                    f"model, got {index}: "
                    "rename it, or use the model it belongs to"
                )
        return indices
    if not classes:
        return numbered(names)
    places: dict[str, int] = {}
    for index, known in enumerate(classes):
        places.setdefault(plainly(known), index)  # ImageNet has two cranes and two maillots: the first index is used
    for name in names:
        if plainly(name) not in places:
            raise UnknownName.among("class of the model", plainly(name), places)
    return {name: places[plainly(name)] for name in names}


def plainly(name: str) -> str:
    """A class name in lower case with spaces for `_`, for comparisons."""
    return " ".join(name.replace("_", " ").casefold().split())


def found_in(classes: Sequence[str], own: Sequence[str], what: str) -> dict[str, int]:
    """The index of each class of a data set that numbers its classes itself, as `own` lists them.

    Where the model's classes are given they decide, by name; those it does not have are left out and named.
    """
    if not classes:
        return {name: index for index, name in enumerate(own)}
    places: dict[str, int] = {}
    for index, known in enumerate(classes):
        places.setdefault(plainly(known), index)
    indices = {name: places[plainly(name)] for name in own if plainly(name) in places}
    lost = [name for name in own if name not in indices]
    if not indices:
        raise BadInput(
            f"{what} has {len(own)} classes ({', '.join(own[:3])}, …) and the model has none of them by these names: "
            "name the model's classes so (factory.classes = […]), or explain the predicted class (--target predicted)"
        )
    if lost:
        warnings.warn(
            f"{len(lost)} of {len(own)} classes of {what} are not among the model's and are left out: "
            f"{', '.join(lost[:5])}{', …' if len(lost) > 5 else ''}",
            stacklevel=3,
        )
    return indices
