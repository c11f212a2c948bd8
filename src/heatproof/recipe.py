"""Component ⇄ plain data. A recipe is what is stored, hashed, shown and replayed.

A configured component is a frozen dataclass of plain values and other components, so its recipe is its registered name
and its fields. A function of one's own is named by module and hashed by source: it can be told apart, and found again
if it lives in an importable module or file.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heatproof import registry
from heatproof.errors import BadInput, UnknownName

Plain = Any  # None | bool | int | float | str | list[Plain] | dict[str, Plain]


def plain(value: Any) -> Plain:
    """The recipe of a value: JSON-ready, with every field spelt out, so that a changed default is a changed key."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        where = f"{type(value).__module__}:{type(value).__qualname__}"
        return {"class": where, "fields": {name: plain(item) for name, item in value._asdict().items()}}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    own = getattr(value, "recipe", None)
    if callable(own):  # models and other things that are more than their fields say how to be found again
        return own()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        known = registry.name_of(value)
        if known:
            return {known[0]: known[1], "fields": fields}
        return {"class": f"{type(value).__module__}:{type(value).__qualname__}", "fields": fields}
    if callable(value):
        return {"function": f"{value.__module__}:{_qualname(value)}", "source": _source(value)}
    raise BadInput(
        f"{value!r} cannot be part of a recipe: use plain values, frozen dataclasses or functions, "
        f"got {type(value).__name__}"
    )


def _qualname(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _source(function: Any) -> str:
    """A hash of the function's text: editing one's own method must not find the old numbers again."""
    try:
        text = inspect.getsource(function if inspect.isroutine(function) else type(function))
    except (OSError, TypeError):
        text = repr(getattr(getattr(function, "__code__", None), "co_code", function))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def key(value: Any) -> str:
    """A hash of the recipe."""
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()[:32]


def label(value: Any) -> str:
    """A short name for people: its own `name`, or the registered one and the fields that differ from their defaults."""
    name = getattr(value, "name", None)
    if isinstance(name, str) and name and not isinstance(value, type):
        return name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return spelt(value)
    return str(getattr(value, "__name__", registry.snake(type(value).__name__)))


def spelt(value: Any) -> str:
    """`integrated_gradients(steps=32)`: the registered name and the fields that differ from their defaults."""
    known = registry.name_of(value)
    title = known[1] if known else registry.snake(type(value).__name__)
    changed = [
        f"{f.name}={_short(getattr(value, f.name))}"
        for f in dataclasses.fields(value)
        if f.init and f.repr and _differs(f, getattr(value, f.name))
    ]
    return f"{title}({', '.join(changed)})" if changed else title


def listed(entry: registry.Entry) -> dict[str, Any]:
    """A registered name as plain data, for `heatproof list --json`."""
    row: dict[str, Any] = {
        "name": entry.name,
        "summary": entry.summary,
        "paper": entry.paper,
        "fields": {name: plain(value) for name, value in entry.fields().items()},
    }
    if entry.kind == "method":
        cost = getattr(entry.make(), "cost", None)
        row["cost"] = None if cost is None else cost()._asdict()
    return row


def _differs(spec: dataclasses.Field[Any], value: Any) -> bool:
    default = registry._default(spec)
    try:
        return bool(plain(value) != plain(default))
    except BadInput:
        return True


def _short(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "[" + ",".join(_short(item) for item in value) + "]"
    if dataclasses.is_dataclass(value) or callable(value):
        return label(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def build(recipe: Plain) -> Any:
    """The component a recipe describes: `build(plain(x))` is x again."""
    if isinstance(recipe, list):
        return tuple(build(item) for item in recipe)
    if not isinstance(recipe, dict):
        return recipe
    for kind in registry.KINDS:
        if kind in recipe and set(recipe) <= {kind, "fields", "revision"}:
            fields = {name: build(value) for name, value in recipe.get("fields", {}).items()}
            return registry.find(kind, recipe[kind], **fields)
    if "class" in recipe:
        make = _import(recipe["class"])
        return make(**{name: build(value) for name, value in recipe["fields"].items()})
    if "function" in recipe:
        function = _import(recipe["function"])
        if recipe.get("source", _source(function)) != _source(function):
            raise BadInput(
                f"{recipe['function']} was edited since this recipe was written: "
                "run the study anew with the function itself"
            )
        return function
    return {name: build(value) for name, value in recipe.items()}


def _import(where: str) -> Any:
    """`package.module:Name` or `path/to/file.py:Name`."""
    place, _, name = where.rpartition(":")
    try:
        module = from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UnknownName(
            f"{where} could not be found ({error}): a function of one's own can be replayed only from a module "
            "or a file, not from a notebook or the command line"
        ) from error
    return found


def from_file(path: Path) -> Any:
    """A Python file as a module."""
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"heatproof_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} must be a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parse(kind: registry.Kind, text: str) -> Any:
    """A component from a command line: `srg`, `integrated_gradients(steps=32)`, nested as in Python."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise BadInput(f"{text!r} must look like name or name(field=value, …): {error.msg}") from error
    if not isinstance(node, ast.Name | ast.Call):
        raise BadInput(f"{text!r} must look like name or name(field=value, …)")
    return _component(kind, node, text)


def _component(kind: registry.Kind, node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):
        return registry.find(kind, node.id)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise BadInput(f"{text!r} must name its fields: name(field=value, …)")
    defaults = registry.entry(kind, node.func.id).fields()
    return registry.find(kind, node.func.id, **_fields(defaults, node, text))


def _fields(defaults: Mapping[str, Any], call: ast.Call, text: str) -> dict[str, Any]:
    return {word.arg or "": _field(defaults.get(word.arg or ""), word.value, text) for word in call.keywords}


def _field(default: Any, node: ast.expr, text: str) -> Any:
    """What stands where `default` stood: another of its kind, the same with other fields, or a value."""
    known = registry.name_of(default)
    if known is not None and isinstance(node, ast.Name | ast.Call):
        return _component(known[0], node, text)
    if dataclasses.is_dataclass(default) and not isinstance(default, type) and isinstance(node, ast.Call):
        parts = {f.name: getattr(default, f.name) for f in dataclasses.fields(default)}
        return dataclasses.replace(default, **_fields(parts, node, text))
    return _value(node, text)


def _value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):
        words = {"true": True, "false": False, "none": None}
        return words.get(node.id.lower(), node.id)
    if isinstance(node, ast.Tuple | ast.List):
        # A component in a list stays spelt: only the owner of the field knows what kind it must be.
        return tuple(ast.unparse(item) if isinstance(item, ast.Call) else _value(item, text) for item in node.elts)
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise BadInput(f"{text!r}: a field must be a number, a word, true, false, none or a list of them") from error
