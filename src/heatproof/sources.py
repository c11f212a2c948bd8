"""What somebody's own code says, as a hash: editing one's method must not find the old numbers again.

Read is the text of a function or class, and of everything of one's own that it reaches by name: helpers in the same
file or in files beside it, base classes, constants, what a closure or a partial holds. Installed packages are left
out: their text is their version's business.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_HOMES = [Path(__file__), *(Path(sysconfig.get_path(name), "file") for name in ("stdlib", "platstdlib"))]
_INSTALLED = frozenset(home.resolve().parent for home in _HOMES)
_PACKAGES = frozenset(("site-packages", "dist-packages"))


def digest(thing: Any) -> str:
    """A hash of the code of a function, a class or a callable object, and of what of one's own it reaches."""
    total = hashlib.sha256()
    for text in _texts(thing, {}):
        total.update(text.encode())
        total.update(b"\x1e")
    return total.hexdigest()[:16]


def is_own(thing: Any) -> bool:
    """Whether a function, class or module is somebody's own: neither heatproof's nor of an installed package."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    module = sys.modules.get(str(name))
    file = getattr(module, "__file__", None)
    if file is None:  # built in, or a notebook, whose classes live in __main__
        return name == "__main__" or module is None
    place = Path(file).resolve()
    return _PACKAGES.isdisjoint(place.parts) and _INSTALLED.isdisjoint(place.parents)


def _texts(thing: Any, met: dict[int, Any]) -> Iterator[str]:
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
        yield _first_text(thing)
    elif isinstance(thing, functools.partial):
        yield from _texts((thing.func, thing.args, tuple(thing.keywords.items())), met)
    elif isinstance(thing, types.MethodType):
        yield from _texts((thing.__func__, thing.__self__), met)
    elif isinstance(thing, types.FunctionType):
        yield from _function(thing, met)
    elif isinstance(thing, type):
        yield from _class(thing, met)
    elif isinstance(thing, types.ModuleType):
        yield _file(thing) if is_own(thing) else thing.__name__
    elif isinstance(thing, property | classmethod | staticmethod | functools.cached_property):
        inside = (getattr(thing, name, None) for name in ("fget", "fset", "func", "__func__"))
        yield from _texts(tuple(inside), met)
    elif hasattr(thing, "state_dict") and hasattr(thing, "named_modules"):  # a network: torch is slow to import
        yield from _texts((type(thing), repr(thing), tuple(thing.state_dict().items())), met)
    elif hasattr(thing, "detach") or isinstance(thing, np.ndarray):
        array = np.asarray(thing.detach().cpu().float() if hasattr(thing, "detach") else thing)
        yield f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
    else:
        yield from _texts(type(thing), met)
        if is_own(type(thing)):  # an object of one's own is its class and what it holds
            yield from _texts(tuple(getattr(thing, "__dict__", {}).items()), met)


_first: dict[int, tuple[Any, str]] = {}  # containers with what they held; kept, so that their numbers stay theirs


def _first_text(container: Any) -> str:
    """What a list, set or dictionary held when first met: one that fills up (a cache, a log) is no other code."""
    if id(container) not in _first:
        _first[id(container)] = container, ""  # should it hold itself
        items = container.items() if isinstance(container, dict) else container
        ordered = sorted(items, key=repr) if isinstance(container, set | frozenset) else items
        _first[id(container)] = container, "\x1d".join(text for item in ordered for text in _texts(item, {}))
    return _first[id(container)][1]


def _function(function: types.FunctionType, met: dict[int, Any]) -> Iterator[str]:
    if not is_own(function):
        yield f"{function.__module__}.{function.__qualname__}"
        return
    yield _text(function)
    yield from _texts((function.__defaults__, tuple((function.__kwdefaults__ or {}).items())), met)
    for cell in function.__closure__ or ():
        try:
            yield from _texts(cell.cell_contents, met)
        except ValueError:  # not filled yet
            continue
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name
            yield from _texts(function.__globals__[name], met)


def _class(own: type, met: dict[int, Any]) -> Iterator[str]:
    if not is_own(own):
        yield f"{own.__module__}.{own.__qualname__}"
        return
    yield _text(own)
    for base in own.__bases__:
        yield from _texts(base, met)
    for name, value in sorted(vars(own).items()):
        if not name.startswith("__") or name in ("__call__", "__init__", "__post_init__"):
            yield from _texts(value, met)


def _names(code: types.CodeType) -> set[str]:
    """Every name a function or one inside it looks up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*(_names(one) for one in inner))


@functools.lru_cache(1024)  # parsing a file again for every key would take longer than the key
def _text(thing: Any) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        return repr((code.co_code, code.co_consts)) if code else f"{thing.__module__}.{thing.__qualname__}"


def _file(module: types.ModuleType) -> str:
    try:
        return Path(str(module.__file__)).read_text()
    except OSError:
        return module.__name__
