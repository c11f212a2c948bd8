"""Component ⇄ plain data. A recipe is what is stored, hashed, shown and replayed.

A configured component is a frozen dataclass of plain values and other components, so its recipe is its registered name
and its fields. A user-defined function is named by module and hashed by source; it can be found again if it lives in
an importable module or file. The same holds for a user-defined object, by its class, if the class makes an equal object
without arguments.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from heatproof import registry, stability
from heatproof.errors import BadInput, HeatproofError, UnknownName, UntrustedCode
from heatproof.field_types import snake
from heatproof.questions import QUESTIONS
from heatproof.spec import source_hash
from heatproof.spec.former_names import former_part
from heatproof.spec.user_files import IN_FILE, imported
from heatproof.traits import cost_of, has_revision, metric_traits, unfit_part

Plain = Any  # None | bool | int | float | str | list[Plain] | dict[str, Plain]


def plain(value: Any) -> Plain:
    """The recipe of a value: JSON-ready, with every field, so that a changed default changes the key."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {**identity(value), "fields": {name: plain(item) for name, item in value._asdict().items()}}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    own = getattr(value, "recipe", None)
    if callable(own):  # models and others with more state than their fields give their own recipe
        return own()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        named = identity(value)
        source = {"source": source_hash.digest(type(value))} if source_hash.is_component(type(value)) else {}
        # The same path with other pictures or maps is another component.
        revision = value.revision if has_revision(value) else ""  # type: ignore[attr-defined]
        held = {"revision": revision} if revision and isinstance(revision, str) else {}
        return {**named, "fields": fields, **source, **held}
    if isinstance(value, functools.partial) and _is_plain((*value.args, *value.keywords.values())):
        return {"partial": plain(value.func), "arguments": plain(value.args), "keywords": plain(value.keywords)}
    if callable(value):
        kind = "function" if hasattr(value, "__qualname__") else "object"
        return {kind: _named(value), "source": source_hash.digest(value)}
    raise BadInput(
        f"{value!r} cannot be part of a recipe: use plain values, frozen dataclasses or functions, "
        f"got {type(value).__name__}"
    )


def identity(value: Any) -> dict[str, str]:
    """How a component is stored: by the kind and name it is registered under, else by the import path of its class."""
    known = registry.name_of(value)
    where = f"{type(value).__module__}:{type(value).__qualname__}"
    # A name registered by a user file is known only after that file is read.
    return {known[0]: known[1]} if known and not IN_FILE.fullmatch(where) else {"class": where}


def _named(function: Any) -> str:
    """The import path of a function, or of the class of a callable object."""
    home = function if hasattr(function, "__qualname__") else type(function)
    return f"{home.__module__}:{home.__qualname__}"


def _is_plain(value: Any) -> bool:
    """Whether a recipe restores exactly this value; a list, for one, would come back as a tuple."""
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def _unedited(found: Any, recipe: dict[str, Any], where: str) -> None:
    if recipe.get("source", "") not in ("", source_hash.digest(found)):
        raise BadInput(
            f"{where} was edited since this recipe was written (or the Python version differs): "
            "run the study again with the current code"
        )


def _same_function(where: str, source: str) -> Any:
    if "<" in where:  # Python's mark for lambdas and local functions
        raise UnknownName(
            f"{where} is a lambda, or a function made by another one, which cannot be imported by name: "
            "run its script again, or define it with `def` at the top of a file"
        )
    found = imported(where)
    if source in ("", source_hash.digest(found)):
        return found
    raise BadInput(
        f"{where} was edited since this recipe was written, or the function that ran was made of it in Python under "
        "the same name (a decorated copy, a method of an object), or the Python version differs: run its script again, "
        "or the study with the current code"
    )


def _same_object(make: Any, source: str, where: str) -> Any:
    """The object a class makes without arguments, if it equals the stored one."""
    try:
        made = make()
    except Exception:  # the class needs arguments, which are not stored
        made = None
    if made is None or source_hash.digest(made) != source:
        raise BadInput(
            f"{where} is the class of an object made in Python, and called without arguments it does not make an equal "
            "one (the object was made with arguments, or the class was edited since): run its script again, "
            "or make the class a frozen dataclass"
        )
    return made


def lost(value: Any) -> Iterator[Any]:
    """Functions and objects in a component that its recipe cannot restore, even if their code does not change."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from lost(item)
    elif callable(getattr(value, "recipe", None)) or isinstance(value, type):
        return
    elif dataclasses.is_dataclass(value):
        yield from lost([getattr(value, f.name) for f in dataclasses.fields(value) if f.init])
    elif isinstance(value, functools.partial) and "partial" in plain(value):
        yield from lost(value.func)
    elif callable(value) and not _is_found(value):
        yield value


def _is_found(value: Any) -> bool:
    where = _named(value)
    place, _, name = where.rpartition(":")
    found = sys.modules.get(place)  # not imported again: the script may still be running
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or "<" in where:
        return False
    if hasattr(value, "__qualname__"):
        return source_hash.digest(found) == source_hash.digest(value)
    try:
        return _same_object(found, source_hash.digest(value), where) is not None
    except BadInput:
        return False


def key(value: Any) -> str:
    """A hash of the recipe."""
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()[:32]


def label(value: Any) -> str:
    """A short name for display: its own, or the registered name with the fields that differ from their defaults."""
    for own in ("label", "name"):
        name = getattr(value, own, None)
        if isinstance(name, str) and name and not isinstance(value, type):
            return name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return spelt(value)
    if isinstance(value, functools.partial):
        arguments = [_short(item) for item in value.args] + [f"{k}={_short(v)}" for k, v in value.keywords.items()]
        return f"{label(value.func)}({', '.join(arguments)})"
    return str(getattr(value, "__name__", snake(type(value).__name__)))


def spelt(value: Any) -> str:
    """`integrated_gradients(steps=32)`: the registered name and the fields that differ from their defaults."""
    known = registry.name_of(value)
    title = known[1] if known else snake(type(value).__name__)
    form_of = _found_again if known and known[0] == "method" else _short
    changed = [
        f"{f.name}={form_of(getattr(value, f.name))}"
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
        row |= {"cost": None, "unstable": False, "unfit": {}}
        try:
            made = entry.make()
            row["unfit"] = _unfit(made)
            row["unstable"] = stability.is_unstable(made)
            cost = cost_of(made)
            row["cost"] = cost._asdict() if cost else None
        except Exception:  # a plug-in that needs fields or is broken must not break the list
            return row
    if entry.kind == "metric":
        row |= {"aliases": {name: alias.about for name, alias in registry.aliases("metric", entry.name).items()}}
        row |= {"higher_is_better": None, "measures": "other", "chance": None, "cost": None, "unfit": {}}
        try:
            made = entry.make()
            row["unfit"] = _unfit(made)
            row["higher_is_better"], row["measures"] = made.higher_is_better, metric_traits(made).measures
            row["chance"], cost = metric_traits(made).chance, cost_of(made)
            row["cost"] = cost._asdict() if cost else None
        except Exception:  # as above
            return row
    return row


def _unfit(component: object) -> dict[str, str]:
    """The questions of a model that a component has no answer to, and why."""
    return {question: found[1] for question in QUESTIONS if (found := unfit_part(component, question))}


def _differs(spec: dataclasses.Field[Any], value: Any) -> bool:
    default = registry._default(spec)
    try:
        return bool(plain(value) != plain(default))
    except BadInput:
        return True


BARE = r"[^\s,()\[\]{}'\"=]+"  # a word that can be read again without quotes


def is_number(text: str) -> bool:
    try:
        return isinstance(ast.literal_eval(text), int | float)
    except (ValueError, SyntaxError):
        return False


def _found_again(value: Any) -> str:
    """Like `_short`, but with whole paths: two methods may use folders of the same name, and labels must differ."""
    known = registry.name_of(value)
    return spelt(value) if known and known[0] == "dataset" else _short(value)


def _short(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "[" + ",".join(_short(item) for item in value) + "]"
    if dataclasses.is_dataclass(value) or callable(value):
        return label(value)
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    if isinstance(value, str) and (not re.fullmatch(BARE, value) or is_number(value)):
        return repr(value)  # it could not be parsed without quotes
    return str(value)


_PARTIAL = ("partial", "arguments", "keywords")
CODE = ("function", "object", "partial")  # recipes of components without fields: always user code


def form(recipe: Mapping[str, Any]) -> str:
    """What a recipe describes: the kind of a registered component, `class`, one of `CODE`, or empty for a mapping."""
    for kind in registry.KINDS:
        if kind in recipe and set(recipe) <= {kind, "fields", "revision", "source"}:
            return kind
    if "class" in recipe:
        return "class"
    if set(recipe) == set(_PARTIAL):
        return "partial"
    if "function" in recipe:
        return "function"
    return "object" if set(recipe) == {"object", "source"} else ""


def parts(recipe: Mapping[str, Any]) -> Iterator[tuple[str, Plain]]:
    """The parts of a recipe by path: field by field, since the fields together are not one of the user's mappings."""
    for name, item in recipe.items():
        if name == "fields" and form(recipe) and isinstance(item, dict):
            yield from ((f"fields.{field}", value) for field, value in item.items())
        else:
            yield name, item


def _class(where: str, trust_code: bool) -> Any:
    found = former_part(where)
    if found is None and not trust_code:
        raise UntrustedCode(
            f"{where} is not one of heatproof's components: read its code, then pass --trust-code to run it"
        )
    return imported(where) if found is None else found


def build(recipe: Plain, *, trust_code: bool = False) -> Any:
    """The component a recipe describes: `build(plain(x))` is x again.

    Without `trust_code` only registered components and heatproof's own dataclasses are made.
    """
    if isinstance(recipe, list):
        return tuple(build(item, trust_code=trust_code) for item in recipe)
    if not isinstance(recipe, dict):
        return recipe
    kind = form(recipe)
    if not trust_code and kind in (*CODE, "model"):  # a model loader takes paths of code and `trust_pickle`
        raise UntrustedCode(f"{kind} {recipe[kind]!r} is no data: read its code, then pass --trust-code to run it")
    if kind in (*registry.KINDS, "class"):
        fields = {name: build(value, trust_code=trust_code) for name, value in recipe.get("fields", {}).items()}
    if kind in registry.KINDS:
        make = registry.entry(kind, recipe[kind]).make  # type: ignore[arg-type]
        _unedited(make, recipe, f"{kind} {recipe[kind]!r}")
        found = _made(lambda: registry.find(kind, recipe[kind], **fields), recipe[kind])  # type: ignore[arg-type]
        if recipe.get("revision", "") not in ("", _made(lambda: plain(found), recipe[kind]).get("revision")):
            raise BadInput(f"{label(found)} holds something else now than when this recipe was written")
        return found
    if kind == "class":
        make = _class(recipe["class"], trust_code)
        _unedited(make, recipe, recipe["class"])
        return _made(lambda: make(**fields), recipe["class"])
    if kind == "partial":
        function, arguments, words = (build(recipe[part], trust_code=trust_code) for part in _PARTIAL)
        return functools.partial(function, *arguments, **words)
    if kind == "function":
        return _same_function(recipe["function"], recipe.get("source", ""))
    if kind == "object":
        return _same_object(imported(recipe["object"]), recipe["source"], recipe["object"])
    return {name: build(value, trust_code=trust_code) for name, value in recipe.items()}


def _made(make: Callable[[], Any], whose: str) -> Any:
    """The component made of stored fields. With unchecked fields the class itself may raise anything."""
    try:
        return make()
    except HeatproofError:
        raise
    except Exception as error:
        raise BadInput(
            f"{whose} cannot be made of its stored fields ({type(error).__name__}: {str(error)[:300]}): "
            "was the file edited, or written by another version?"
        ) from error
