"""Finds the user code that a stored study names: a data file may not run it unless the caller trusts it.

A stored study may name registered components and heatproof's own dataclasses. Everything else is code: Python files,
functions, other classes, model factories. Some of it would run only in the middle of a run (a metric that loads the
model it contrasts with), so every text is searched before anything is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from heatproof.errors import BadInput, UntrustedCode
from heatproof.spec import recipe
from heatproof.spec.former_names import former_part
from heatproof.spec.parse import expression

COMPONENTS = ("datasets", "methods", "metrics")


class Named(NamedTuple):
    """A place in a study that names code."""

    where: str  # studies[0].methods[1]
    what: str  # /home/someone/mine.py:Ours

    def __str__(self) -> str:
        return f"{self.where}: {self.what if len(self.what) <= 200 else self.what[:200] + '…'}"


def named(studies: Sequence[Mapping[str, Any]], models_too: bool = True) -> list[Named]:
    """The code that stored studies name; without their models if the caller gives other ones."""
    found: list[Named] = []
    for i, study in enumerate(studies):
        place = f"studies[{i}]"
        for j, model in enumerate(study["models"] if models_too else ()):
            specs = dict.fromkeys((model["spec"], model.get("from", "")))
            found += [Named(f"{place}.models[{j}]", spec) for spec in specs if names_file(spec)]
        for part in COMPONENTS:
            found += _in(study[part], f"{place}.{part}")
    return found


def written_in(studies: Sequence[Mapping[str, Any]]) -> list[Named]:
    """Python files that define the studies; they run only if something cannot be found elsewhere."""
    return [Named(f"studies[{i}].file", study["file"]) for i, study in enumerate(studies) if study.get("file")]


def refuse(found: Sequence[Named]) -> None:
    """Raises `UntrustedCode` with the list, if there is any code."""
    if found:
        listed = "; ".join(map(str, found[:20])) + (f"; and {len(found) - 20} more" if len(found) > 20 else "")
        raise UntrustedCode(
            f"this study names code, which a data file may not run on its own: {listed}. "
            "Read that code; if you trust it, pass --trust-code (trust_code=True)"
        )


def _in(value: Any, where: str) -> Iterator[Named]:
    if isinstance(value, str):
        if names_file(value):
            yield Named(where, value)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _in(item, f"{where}[{i}]")
    elif isinstance(value, dict):
        kind = recipe.form(value)
        is_code = kind in (*recipe.CODE, "model") or (kind == "class" and former_part(value["class"]) is None)
        if is_code:
            yield Named(where, value[kind] if isinstance(value[kind], str) else kind)
        for name, item in recipe.parts(value):
            if not (is_code and name == kind and isinstance(item, str)):
                yield from _in(item, f"{where}.{name}")


def names_file(text: str) -> bool:
    """Whether a text, or a part of it read as a component, is `file.py:Name`, whatever its quotes."""
    if ".py:" in text:
        return True
    if not any(mark in text for mark in "'\""):
        return False
    try:
        words = [node.value for node in ast.walk(expression(text)) if isinstance(node, ast.Constant)]
    except BadInput:  # then no component can be made of it, either
        return False
    return any(names_file(word) for word in words if isinstance(word, str) and len(word) < len(text))
