"""Hashes of user code: after editing a method, its old numbers must not be found again.

The hash covers the compiled code of a function or class, which is what runs, and all user code that it reaches by
name: helpers in the same file or in files beside it, base classes, constants, what a closure or a partial holds.
Installed packages are left out, since their version identifies them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_HOMES = [Path(__file__).parent, *(Path(sysconfig.get_path(name), "file") for name in ("stdlib", "platstdlib"))]
_INSTALLED = frozenset(home.resolve().parent for home in _HOMES)
_PACKAGES = frozenset(("site-packages", "dist-packages"))
_GLOBAL = frozenset(("LOAD_GLOBAL", "LOAD_NAME"))


_plugin: ContextVar[str] = ContextVar("_plugin", default="")  # the package of the plug-in being hashed


def digest(thing: Any) -> str:
    """A hash of the code of a function, a class or a callable object, and of the user code it reaches.

    For a plug-in's component it also covers the code it reaches in its own package, installed or not.
    """
    total = hashlib.sha256()
    token = _plugin.set(_package(thing) if is_component(thing) else "")
    try:
        for text in _texts(thing, {}):
            total.update(text.encode("utf-8", "backslashreplace"))
            total.update(b"\x1e")
    finally:
        _plugin.reset(token)
    return total.hexdigest()[:16]


def is_component(thing: Any) -> bool:
    """Whether this is a configurable class from outside heatproof: its code is part of a key."""
    return isinstance(thing, type) and dataclasses.is_dataclass(thing) and _package(thing) != "heatproof"


def _package(thing: Any) -> str:
    return str(getattr(thing, "__module__", "")).partition(".")[0]


def is_own(thing: Any) -> bool:
    """Whether a function, class or module is user code: part neither of heatproof nor of an installed package."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    if _plugin.get() and str(name).partition(".")[0] == _plugin.get():
        return True
    module = sys.modules.get(str(name))
    file = getattr(module, "__file__", None)
    if file is None:  # built-in, or from a notebook, whose classes live in __main__
        return name == "__main__" or module is None
    place = Path(file).resolve()
    return _PACKAGES.isdisjoint(place.parts) and _INSTALLED.isdisjoint(place.parents)


def _texts(thing: Any, met: dict[int, Any]) -> Iterator[str]:
    """Pieces of text that differ if the things differ, equal in every process."""
    if isinstance(thing, _PLAIN):
        yield repr(thing)
        return
    if id(thing) in met:
        return
    met[id(thing)] = thing  # keeps the object alive: Python reuses the id of a deleted one
    if isinstance(thing, tuple):
        for item in thing:
            yield from _texts(item, met)
    elif isinstance(thing, list | set | frozenset | dict):
        yield _held(thing)
    elif isinstance(thing, functools.partial):
        yield from _texts((thing.func, thing.args, tuple(thing.keywords.items())), met)
    elif isinstance(thing, types.MethodType):
        yield from _texts((thing.__func__, thing.__self__), met)
    elif isinstance(thing, types.FunctionType):
        yield from _function(thing, met)
    elif isinstance(thing, type):
        yield from _class(thing, met)
    elif isinstance(thing, types.ModuleType):
        yield from _module(thing, met)
    elif isinstance(thing, property | classmethod | staticmethod | functools.cached_property):
        yield from _texts(tuple(getattr(thing, name, None) for name in ("fget", "fset", "func", "__func__")), met)
    elif callable(thing) and hasattr(thing, "__wrapped__"):  # a cached function
        yield from _texts(thing.__wrapped__, met)
    else:
        yield from _object(thing, met)


def _object(thing: Any, met: dict[int, Any]) -> Iterator[str]:
    """The text of an object: its class and its state."""
    yield from _texts(type(thing), met)
    if hasattr(thing, "state_dict") and hasattr(
        thing, "named_modules"
    ):  # a network; not by isinstance, since torch is slow to import
        yield repr(thing)
        yield from _texts(tuple(thing.state_dict().items()), met)
        for part in thing.modules():
            if is_own(type(part)):
                settings = tuple((name, value) for name, value in vars(part).items() if isinstance(value, _PLAIN))
                yield from _texts((type(part), settings), met)
    elif hasattr(thing, "detach") or isinstance(thing, np.ndarray | np.generic):
        array = np.asarray(thing.detach().cpu().float() if hasattr(thing, "detach") else thing)
        yield f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
    elif dataclasses.is_dataclass(thing):
        yield from _texts(tuple((f.name, getattr(thing, f.name, None)) for f in dataclasses.fields(thing)), met)
    elif is_own(type(thing)) and hasattr(thing, "__dict__"):
        yield from _texts(tuple(vars(thing).items()), met)
    else:
        yield from _texts(_state(thing), met)


def _state(thing: Any) -> tuple[Any, ...]:
    """The state that copying would transfer; empty if the object cannot be copied."""
    try:
        made = thing.__reduce_ex__(2)
    except Exception:  # locks, files, generators
        return ()
    parts = made if isinstance(made, tuple) else (made,)
    return tuple(tuple(part.items()) if isinstance(part, dict) else part for part in parts)


_first: dict[
    int, tuple[Any, str]
] = {}  # containers and their first content; kept alive, so that their ids are not reused


def _held(container: Any) -> str:
    """The content of a list, set or dictionary at first sight: one that fills up (a cache, a log) does not change the
    code.

    A dictionary of settings (plain values by name) is read as it is now.
    """
    if isinstance(container, dict) and all(isinstance(k, str) and isinstance(v, _PLAIN) for k, v in container.items()):
        return repr(tuple(container.items()))
    if id(container) not in _first:
        _first[id(container)] = container, ""  # it may contain itself
        items = container.items() if isinstance(container, dict) else container
        each = ["\x1d".join(_texts(item, {})) for item in items]
        ordered = sorted(each) if isinstance(container, set | frozenset) else each
        _first[id(container)] = container, "\x1c".join(ordered)
    return _first[id(container)][1]


def _function(function: types.FunctionType, met: dict[int, Any]) -> Iterator[str]:
    if not is_own(function):
        yield f"{function.__module__}.{function.__qualname__}"
        return
    yield _compiled(function.__code__)
    yield from _texts((function.__defaults__, tuple((function.__kwdefaults__ or {}).items())), met)
    for cell in function.__closure__ or ():
        try:
            yield from _texts(cell.cell_contents, met)
        except ValueError:  # an empty closure cell
            continue
    for name in _globals(function.__code__):
        if name in function.__globals__:
            yield name
            yield from _texts(function.__globals__[name], met)


def _class(own: type, met: dict[int, Any]) -> Iterator[str]:
    yield f"{own.__module__ if not is_own(own) else ''}.{own.__qualname__}"
    if not is_own(own):
        return
    for base in own.__bases__:
        yield from _texts(base, met)
    for name, value in sorted(vars(own).items()):
        if not name.startswith("__") or isinstance(value, types.FunctionType):
            yield name
            yield from _texts(getattr(value, "__wrapped__", value), met)


def _module(module: types.ModuleType, met: dict[int, Any]) -> Iterator[str]:
    """The text of a user file, and of what it imports from other user files."""
    yield module.__name__
    if not is_own(module):
        return
    with contextlib.suppress(OSError):
        yield Path(str(module.__file__)).read_text()
    for value in list(vars(module).values()):
        named = isinstance(value, types.FunctionType | type) and value.__module__ != module.__name__
        if (named or isinstance(value, types.ModuleType)) and is_own(value):
            yield from _texts(value, met)


@functools.lru_cache(4096)
def _compiled(code: types.CodeType) -> str:
    """The compiled code without file names and line numbers."""
    constants = [
        _compiled(constant)
        if isinstance(constant, types.CodeType)
        else repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
        for constant in code.co_consts
    ]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))


@functools.lru_cache(4096)
def _globals(code: types.CodeType) -> tuple[str, ...]:
    """Every global name that a function, or a nested one, looks up."""
    found = {str(step.argval) for step in dis.get_instructions(code) if step.opname in _GLOBAL}
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return tuple(sorted(found.union(*(_globals(nested) for nested in inner))))
