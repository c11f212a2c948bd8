"""Parses components from text: command-line words, and labels."""

from __future__ import annotations

import ast
import dataclasses
import re
import warnings
from collections.abc import Mapping
from typing import Any, get_args

from heatproof import field_types, registry
from heatproof.errors import BadInput, UnknownName
from heatproof.spec import short_form
from heatproof.spec.recipe import BARE, is_number
from heatproof.spec.short_form import QUOTED, ShortForm
from heatproof.spec.user_files import IN_FILE, read_once
from heatproof.storage import any_path
from heatproof.traits import part_traits

LONGEST = 20_000  # letters of a component's text; a path has at most 4,096


def _quoted(text: str) -> str:
    """Adds quotes to layers and paths in a field: `layer=features.0` is read as `layer='features.0'`."""

    def quote(found: re.Match[str]) -> str:
        lead, word = found["lead"], found["word"]
        bare = word is None or word.isidentifier() or is_number(word)
        return found[0] if bare else f"{lead}{word!r}"

    return re.sub(rf"{QUOTED}|(?P<lead>[=\[,]\s*)(?P<word>{BARE})", quote, text)


def parse(kind: registry.Kind, text: str) -> Any:
    """A component from a command line: `srg`, `integrated_gradients(steps=32)`, nested as in Python.

    User code is `path/to/file.py:Name`: a class with or without fields, or a function.
    """
    own = IN_FILE.fullmatch(text.strip())
    spoken = f"{own['name']}{own['fields'] or ''}" if own else text.strip()
    form = "file.py:Name or file.py:Name(field=value, …)" if own else "name or name(field=value, …)"
    try:
        node = expression(spoken)
    except BadInput as error:
        raise BadInput(f"{_shown(text)} must look like {form}: {error}") from error
    if not isinstance(node, ast.Name | ast.Call):
        raise BadInput(f"{text!r} must look like {form}")
    try:
        return _of_file(kind, own, node, text) if own else _component(kind, node, text)
    except RecursionError as error:  # an expression that Python reads may still be nested too deeply to be walked
        raise BadInput(f"{_shown(text)} must look like {form}: it is nested too deeply") from error


def expression(text: str) -> ast.expr:
    """A component's text as a syntax tree, or `BadInput` with the reason."""
    if len(text) > LONGEST:
        raise BadInput(f"at most {LONGEST} letters, got {len(text)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on odd escapes and literals
            return ast.parse(_quoted(short_form.marked(text.strip())), mode="eval").body
    except SyntaxError as error:
        raise BadInput(error.msg) from error
    except (ValueError, RecursionError, MemoryError) as error:  # no text, or nested too deeply for Python's parser
        raise BadInput(str(error) or "it is nested too deeply") from error


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


def components(kind: registry.Kind, text: str) -> list[Any]:
    """Several components from one command-line word: commas outside brackets separate them."""
    return [parse(kind, part) for part in words(text)]


def words(text: str) -> list[str]:
    """The parts of a list on the command line, separated by the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _of_file(kind: registry.Kind | None, own: re.Match[str], node: ast.Name | ast.Call, text: str) -> Any:
    file, name = any_path.expanded(own["file"]).absolute(), own["name"]
    module = read_once(file)
    make = getattr(module, name, None)
    if not callable(make):
        defined = [key for key, one in vars(module).items() if getattr(one, "__module__", "") == str(file)]
        raise UnknownName.among(f"{kind or 'component'} in {file}", name, defined)
    if isinstance(node, ast.Name) and not isinstance(make, type):
        return make
    if isinstance(node, ast.Call) and (node.args or isinstance(node.func, ast.Call)):
        raise BadInput(f"{text!r} must name its fields: file.py:Name(field=value, …)")
    known = registry.Entry(kind or "method", name, make).fields()
    fields = _fields(make, known, node, text) if isinstance(node, ast.Call) else {}
    field_types.check_fields(f"{kind or 'component'} {name!r}", make, known, fields)
    try:
        return make(**fields)
    except TypeError as error:
        raise BadInput(f"{text!r} could not be made: {error}") from error


def _in_file(name: ast.expr) -> re.Match[str] | None:
    """The match for `file.py:Name` in place of a component's name; `_quoted` turns it into `'file.py:Name'(k=2)`."""
    own = IN_FILE.fullmatch(name.value) if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
    return own if own and own["fields"] is None else None


def _component(kind: registry.Kind, node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):
        return registry.find(kind, node.id)
    if isinstance(node, ast.Call) and (own := _in_file(node.func)):
        return _of_file(kind, own, node, text)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise BadInput(f"{text!r} must name its fields: name(field=value, …)")
    found = registry.entry(kind, node.func.id)
    named = _short_named(node, found.fields(), text) if node.args else node
    return registry.find(kind, node.func.id, **_fields(found.make, found.fields(), named, text))


def _short_named(call: ast.Call, fields: Mapping[str, Any], text: str) -> ast.Call:
    """`srg(telea/grid)` as `srg(occlusion=telea/grid)`: of a component with one field that has a short form."""
    open_to = [name for name, default in fields.items() if part_traits(default).short]
    if len(call.args) != 1 or len(open_to) != 1 or short_form.read(call.args[0]) is None:
        also = f" (of {open_to[0]} alone also imputer/segmenter)" if len(open_to) == 1 else ""
        raise BadInput(f"{text!r} must name its fields: name(field=value, …){also}")
    return ast.Call(call.func, [], [ast.keyword(open_to[0], call.args[0]), *call.keywords])


def _admits_dataset(hint: Any) -> bool:
    from heatproof.types import Dataset  # imports torch, which `--help` must not wait for

    return Dataset in get_args(hint)


def _dataset(node: ast.expr, text: str) -> Any:
    from heatproof.types import Dataset

    found = (
        _component("dataset", node, text) if isinstance(node, ast.Call) else parse("dataset", ast.literal_eval(node))
    )
    if not isinstance(found, Dataset):
        raise BadInput(f"{text!r}: {ast.unparse(node)} must make a data set, got {type(found).__name__}")
    return found


def _fields(make: Any, defaults: Mapping[str, Any], call: ast.Call, text: str) -> dict[str, Any]:
    hints = field_types.hints_of(make)
    names = [word.arg or "" for word in call.keywords]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadInput(f"{text!r} says {twice[0]} twice: leave one out")
    parts = zip(names, call.keywords, strict=True)
    return {name: _field(defaults.get(name), hints.get(name, Any), word.value, text) for name, word in parts}


def _field(default: Any, hint: Any, node: ast.expr, text: str) -> Any:
    """The value of a field: another component in place of the default, the default with other fields, or plain data."""
    known = registry.name_of(default)
    if (isinstance(node, ast.Call) or _in_file(node)) and _admits_dataset(hint):  # other words are names of data sets
        return _dataset(node, text)
    if isinstance(node, ast.Call) and (own := _in_file(node.func)):
        return _of_file(known[0] if known else None, own, node, text)
    if known is not None and known[0] != "part" and isinstance(node, ast.Name | ast.Call):
        return _component(known[0], node, text)
    if (short := short_form.read(node)) and (names := part_traits(default).short):
        return _of_short_form(default, names, short, text)
    if (other := _other_part(default, hint, node)) is not None:
        return _component(other, node, text)
    if dataclasses.is_dataclass(default) and not isinstance(default, type) and isinstance(node, ast.Call):
        parts = {f.name: getattr(default, f.name) for f in dataclasses.fields(default) if f.init}
        changed = _fields(type(default), parts, node, text)
        field_types.check_fields(field_types.snake(type(default).__name__), type(default), parts, changed)
        return dataclasses.replace(default, **changed)
    value = _value(node, hint, text)
    if isinstance(value, str) and known is not None and known[0] != "part" and IN_FILE.fullmatch(value):
        return parse(known[0], value)
    if isinstance(value, str) and (known is not None or dataclasses.is_dataclass(default)):
        raise BadInput(f"{text!r}: {value!r} must look like name or name(field=value, …)")
    return (value,) if isinstance(default, tuple) and not isinstance(value, tuple) and value is not None else value


def _of_short_form(default: Any, names: tuple[str, ...], short: ShortForm, text: str) -> Any:
    """The default with the two components of a short form, and with the number of its class where none is given."""
    left, right, times = names
    sides: dict[str, Any] = {}
    for name, node, count in ((left, short.left, None), (right, short.right, short.count)):
        known = registry.name_of(getattr(default, name))
        if known is None:  # the default holds user code
            raise BadInput(f"{text!r} must name its fields: {left}=…, {right}=…")
        sides[name] = _component(known[0], node if count is None else _counted(known[0], node, count, text), text)
    usual = {f.name: f.default for f in dataclasses.fields(default)}[times]
    return dataclasses.replace(default, **sides, **{times: usual if short.times is None else short.times})


def _counted(kind: registry.Kind, node: ast.expr, count: int, text: str) -> ast.Call:
    """`slic` with a number as `slic(n=…)`: its first field."""
    if not isinstance(node, ast.Name):
        raise BadInput(f"{text!r}: {ast.unparse(node)}-{count} says it twice: leave -{count} out")
    fields = list(registry.entry(kind, node.id).fields())
    if not fields:
        raise BadInput(f"{text!r}: {kind} {node.id!r} has no number: leave -{count} out")
    return ast.Call(node, [], [ast.keyword(fields[0], ast.Constant(count))])


def _other_part(default: Any, hint: Any, node: ast.expr) -> registry.Kind | None:
    """The kind of a component in place of a part, where the field takes others than its default: `energy(of=road)`."""
    known = registry.name_of(default)
    name = node.func if isinstance(node, ast.Call) else node
    if known is None or known[0] != "part" or hint is type(default) or not isinstance(name, ast.Name):
        return None
    if name.id == known[1] and isinstance(node, ast.Call):  # the default with other fields
        return None
    kinds: tuple[registry.Kind, ...] = ("part", "metric")
    return next((kind for kind in kinds if registry.is_known(kind, name.id)), None)


def _value(node: ast.expr, hint: Any, text: str) -> Any:
    if isinstance(node, ast.Name):
        words = {"true": True, "false": False, "none": None}
        meant = words.get(node.id.lower(), node.id)
        return meant if field_types.fits(meant, hint) else node.id  # `none` may be one of a field's choices
    if isinstance(node, ast.Tuple | ast.List):
        # A component in a list stays text: only the owner of the field knows its kind.
        return tuple(ast.unparse(item) if isinstance(item, ast.Call) else _value(item, Any, text) for item in node.elts)
    try:
        value = ast.literal_eval(node)
        wordlike = not field_types.fits(value, hint) and field_types.fits(ast.unparse(node), hint)
        return ast.unparse(node) if wordlike else value  # layer=3 means the layer named "3"
    except ValueError as error:
        raise BadInput(f"{text!r}: a field must be a number, a word, true, false, none or a list of them") from error
