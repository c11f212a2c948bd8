"""The target that a word names: an index, a class, a label or a value by its name, `yes` or `no`."""

from __future__ import annotations

import re

from heatproof.data._support.class_names import plainly
from heatproof.errors import BadInput, UnknownName
from heatproof.models._support.outputs import SIDES
from heatproof.types import Model

CHOSEN = ("predicted", "label")  # targets that differ from picture to picture


def target_index(model: Model, count: int, target: str) -> int:
    """The index among `count` columns that a target names."""
    what = "class" if model.question == "classes" else "label" if model.kind == "sigmoid" else "value"
    reach = f"0 … {count - 1}"
    if re.fullmatch(r"[+-]?\d+", target.strip()):
        if not 0 <= int(target) < count:
            raise BadInput(f"target must be a {what} of model {model.name!r}, whose indices are {reach}, got {target}")
        return int(target)
    classes = model.classes
    names = [plainly(name) for name in classes]
    sided = model.question == "yes_no" and not model.several
    if sided and plainly(target) in SIDES and plainly(target) not in names:
        return SIDES.index(plainly(target))
    if not names:
        raise BadInput(
            f"target must be 'predicted' or a {what} index in {reach}, since model {model.name!r} names no "
            f"{'classes' if what == 'class' else what + 's'}, got {target!r}"
        )
    # An exact match first, else one that differs in case or underscores.
    places = [index for index, name in enumerate(classes) if name == target]
    places = places or [index for index, name in enumerate(names) if name == plainly(target)]
    if not places:
        raise UnknownName.among(f"{what} of model {model.name!r}", plainly(target), names)
    if len(places) > 1:
        raise BadInput(f"target {target!r} may be any of the classes {', '.join(map(str, places))}: give the index")
    return places[0]


def needs_choice(model: Model) -> str:
    """What to do where several values are predicted and none is the prediction."""
    names = ", ".join(model.classes[:6]) or f"0 … {(model.width or 1) - 1}"
    return (
        f"model {model.name!r} answers with {model.width} values, and none of them is the predicted one: name the "
        f"value to be explained, as target=… or --target, one of {names}"
    )
