"""What components declare is read in one place: nothing else probes for an attribute that is a trait."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path

import heatproof
from heatproof import traits

SOURCE = Path(inspect.getfile(heatproof)).parent
# Attributes that a user's function or network carries; they are no components.
OTHERS_OWN = {("models/from_file.py", "classes"), ("models/from_file.py", "output")}


def declared() -> set[str]:
    """Every trait: fields of the traits of each kind, and what `traits` reads by itself."""
    kinds = [kind for kind in vars(traits).values() if inspect.isclass(kind) and kind.__name__.endswith("Traits")]
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    return fields | {name for _, name in probes(SOURCE / "traits.py")}


def probes(file: Path) -> list[tuple[int, str]]:
    """The line and the name of each `getattr` with a default and `hasattr` whose name is written out."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            asks = node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3)
            if asks and isinstance(node.args[1], ast.Constant) and not node.args[1].value.startswith("__"):
                found.append((node.lineno, node.args[1].value))
    return found


def test_traits_are_read_in_one_place() -> None:
    known = declared()
    assert {"signed", "axes", "fast", "stage"} <= known
    elsewhere = [
        f"{place}:{line} {name}"
        for file in sorted(SOURCE.rglob("*.py"))
        for line, name in probes(file)
        if (place := file.relative_to(SOURCE).as_posix()) != "traits.py"
        and name in known
        and (place, name) not in OTHERS_OWN
    ]
    assert elsewhere == []
