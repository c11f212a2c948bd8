"""What somebody's own code does, as a hash: editing one's method must not find the old numbers again.

Read is the compiled code of a function or class, which is what runs, and of everything of one's own that it reaches by
name: helpers in the same file or in files beside it, base classes, constants, what a closure or a partial holds.
Installed packages are left out: what they do is their version's business.
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


_asked: ContextVar[str] = ContextVar("_asked", default="")  # the package of the plug-in that is read


def digest(thing: Any) -> str:
    """A hash of the code of a function, a class or a callable object, and of what of one's own it reaches.

    Of a plug-in's component also what of its own package it reaches, installed or not.
    """
    total = hashlib.sha256()
    token = _asked.set(_package(thing) if is_component(thing) else "")
    try:
        for text in _texts(thing, {}):
            total.update(text.encode("utf-8", "backslashreplace"))
            total.update(b"\x1e")
    finally:
        _asked.reset(token)
    return total.hexdigest()[:16]


def is_component(thing: Any) -> bool:
    """Whether this is a class of configured things that is not heatproof's: such code is part of a key."""
    return isinstance(thing, type) and dataclasses.is_dataclass(thing) and _package(thing) != "heatproof"


def _package(thing: Any) -> str:
    return str(getattr(thing, "__module__", "")).partition(".")[0]


def is_own(thing: Any) -> bool:
    """Whether a function, class or module is somebody's own: neither heatproof's nor of an installed package."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    if _asked.get() and str(name).partition(".")[0] == _asked.get():
        return True
    module = sys.modules.get(str(name))
    file = getattr(module, "__file__", None)
    if file is None:  # built in, or a notebook, whose classes live in __main__
        return name == "__main__" or module is None
    place = Path(file).resolve()
    return _PACKAGES.isdisjoint(place.parts) and _INSTALLED.isdisjoint(place.parents)


def _texts(thing: Any, met: dict[int, Any]) -> Iterator[str]:
    """Pieces of text that differ where the thing does, the same in every process."""
    if isinstance(thing, _PLAIN):
        yield repr(thing)
        return
    if id(thing) in met:
        return
    met[id(thing)] = thing  # held: the number of something gone may be given away again
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
    elif callable(thing) and hasattr(thing, "__wrapped__"):  # a helper that remembers its answers
        yield from _texts(thing.__wrapped__, met)
    else:
        yield from _object(thing, met)


def _object(thing: Any, met: dict[int, Any]) -> Iterator[str]:
    """A thing is its class and what it holds."""
    yield from _texts(type(thing), met)
    if hasattr(thing, "state_dict") and hasattr(thing, "named_modules"):  # a network: torch is slow to import
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
    """What a stranger's object would be copied from: nothing, if it cannot be copied."""
    try:
        made = thing.__reduce_ex__(2)
    except Exception:  # locks, files, generators
        return ()
    parts = made if isinstance(made, tuple) else (made,)
    return tuple(tuple(part.items()) if isinstance(part, dict) else part for part in parts)


_first: dict[int, tuple[Any, str]] = {}  # containers with what they held; kept, so that their numbers stay theirs


def _held(container: Any) -> str:
    """What a list, set or dictionary held when first met: one that fills up (a cache, a log) is no other code.

    A dictionary of settings, plain values by name, is read as it is now.
    """
    if isinstance(container, dict) and all(isinstance(k, str) and isinstance(v, _PLAIN) for k, v in container.items()):
        return repr(tuple(container.items()))
    if id(container) not in _first:
        _first[id(container)] = container, ""  # should it hold itself
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
        except ValueError:  # not filled yet
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
    """The text of a file of one's own, and what it brings in from others."""
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
    """What runs, without what only tells where it was written."""
    constants = [
        _compiled(one)
        if isinstance(one, types.CodeType)
        else repr(sorted(map(repr, one)) if isinstance(one, frozenset) else one)
        for one in code.co_consts
    ]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))


@functools.lru_cache(4096)
def _globals(code: types.CodeType) -> tuple[str, ...]:
    """Every name a function, or one inside it, looks up outside."""
    found = {str(one.argval) for one in dis.get_instructions(code) if one.opname in _GLOBAL}
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return tuple(sorted(found.union(*(_globals(one) for one in inner))))
