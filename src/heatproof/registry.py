"""Names for components: `@method`, `@metric`, … register one, `find` returns it, plug-ins come by entry point.

    @method                      # named after the class: IntegratedGradients -> integrated_gradients
    @dataclass(frozen=True)
    class IntegratedGradients: ...

    @method("ig_smoothgrad")     # or named outright; a function that returns a component serves as well
    def ig_smoothgrad() -> Smoothed: ...

A package adds components by an entry point in the group `heatproof.plugins` that names a module to import.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal, TypeVar, get_args, overload

from heatproof.errors import BadInput, UnknownName
from heatproof.field_types import check_fields, checked_as, snake

Kind = Literal["method", "metric", "imputer", "segmenter", "dataset", "model", "protocol", "part"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # a part is a piece of other components: an occlusion, a view, a sampler
PLUGINS = "heatproof.plugins"
HOMES = ("data", "models", "occlusion", "methods", "metrics", "audit", "protocols")

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry:
    """One registered name."""

    kind: Kind
    name: str
    make: Callable[..., Any]
    preset: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # fields that an alias sets
    about: str = ""  # of an alias: which package uses the name, and what differs there

    @property
    def is_alias(self) -> bool:
        """Whether this is another package's name for a component, with the settings that match."""
        return bool(self.about)

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        text = inspect.getdoc(self.make) or ""
        return re.split(r"(?<=[.!?])\s|\n\n", text.strip(), maxsplit=1)[0].replace("\n", " ").strip()

    @property
    def paper(self) -> str:
        """The docstring's line that starts with `Paper:`; without one, that of the class it is a form of."""
        bases = self.make.__mro__ if isinstance(self.make, type) else (self.make,)
        found = (re.search(r"^Paper:\s*(.+?)(?:\n\s*\n|\Z)", inspect.getdoc(one) or "", re.M | re.S) for one in bases)
        return next((" ".join(paper.group(1).split()) for paper in found if paper), "")

    def fields(self) -> dict[str, Any]:
        """The fields that can be set, with their defaults."""
        if dataclasses.is_dataclass(self.make):
            return {f.name: _default(f) for f in dataclasses.fields(self.make) if f.init} | dict(self.preset)
        parameters = inspect.signature(self.make).parameters.values()
        return {p.name: None if p.default is p.empty else p.default for p in parameters}


def _default(spec: dataclasses.Field[Any]) -> Any:
    if spec.default is not dataclasses.MISSING:
        return spec.default
    return spec.default_factory() if spec.default_factory is not dataclasses.MISSING else None


_entries: dict[tuple[Kind, str], Entry] = {}


def register(kind: Kind, make: Callable[..., Any], name: str | None = None) -> None:
    name = name or snake(make.__name__)
    if kind == "method" and inspect.isfunction(make) and {"model", "batch"} <= set(inspect.signature(make).parameters):
        raise BadInput(
            f"{name!r} must be a class, or a function that returns a component, to be registered as a method: "
            "a function (model, batch) -> maps is given to a study as it is"
        )
    known = _entries.get((kind, name))
    if known is not None and _origin(known.make) != _origin(make):
        raise BadInput(
            f"two {kind}s are called {name!r}: {_origin(known.make)} and {_origin(make)}; rename one of them"
        )
    _entries[kind, name] = Entry(kind, name, make)
    if isinstance(make, type):
        checked_as(make, f"{kind} {name!r}")


def register_alias(kind: Kind, name: str, make: Callable[..., Any], about: str, **preset: Any) -> None:
    """Another package's name for a component, with the fields at which it computes what that package does.

    An alias can be typed wherever a name can; fields given with it override its preset. Studies store the component.
    """
    known = _entries.get((kind, name))
    if known is not None and not (known.is_alias and _origin(known.make) == _origin(make)):
        raise BadInput(f"two {kind}s are called {name!r}: {_origin(known.make)} and an alias of {_origin(make)}")
    if not about.strip():
        raise BadInput(f"alias {name!r} must say whose name it is and what is different there")
    check_fields(f"{kind} {name!r}", make, Entry(kind, name, make).fields(), preset)
    _entries[kind, name] = Entry(kind, name, make, preset, about)


def _origin(make: Callable[..., Any]) -> str:
    return f"{make.__module__}.{make.__qualname__}"


class _Decorator:
    def __init__(self, kind: Kind) -> None:
        self.kind: Kind = kind

    @overload
    def __call__(self, target: F, /) -> F: ...
    @overload
    def __call__(self, target: str, /) -> Callable[[F], F]: ...
    def __call__(self, target: F | str, /) -> F | Callable[[F], F]:
        if isinstance(target, str):

            def named(make: F) -> F:
                register(self.kind, make, target)
                return make

            return named
        register(self.kind, target)
        return target

    def alias(self, name: str, make: Callable[..., Any], about: str, **preset: Any) -> None:
        """`metric.alias("AbPC", SRG, "Quantus: …", points=21)`, below the class; see `register_alias`."""
        register_alias(self.kind, name, make, about, **preset)


method = _Decorator("method")
metric = _Decorator("metric")
imputer = _Decorator("imputer")
segmenter = _Decorator("segmenter")
dataset = _Decorator("dataset")
model = _Decorator("model")
protocol = _Decorator("protocol")
part = _Decorator("part")


@cache
def _load_all() -> None:
    """Imports every module that registers something, built-in first, then plug-ins; a broken plug-in only warns."""
    for home in HOMES:
        package = importlib.import_module(f"heatproof.{home}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    for point in entry_points(group=PLUGINS):
        try:
            point.load()
        except Exception as error:
            warnings.warn(f"plug-in {point.name!r} could not be loaded and is left out: {error}", stacklevel=2)


def loaded() -> bool:
    """Whether anything is registered in this process yet."""
    return bool(_entries)


def is_known(kind: Kind, name: str) -> bool:
    """Whether a component of this kind and name is registered."""
    _load_all()
    return (kind, name) in _entries


def entry(kind: Kind, name: str) -> Entry:
    """The registered entry, or `UnknownName` with the nearest name."""
    _load_all()
    for known in (name, snake(name)):  # the class name works as well
        if (kind, known) in _entries:
            return _entries[kind, known]
    raise UnknownName.among(kind, name, [*names(kind), *aliases(kind)])


def find(kind: Kind | str, name: str = "", /, **fields: Any) -> Any:
    """A component by name, its fields set: `find("integrated_gradients", steps=32)`.

    Where several kinds share a name, give the kind first: `find("imputer", "constant")`.
    """
    if not name:
        kind, name = _kind_of(kind), kind
    found = entry(kind, name)  # type: ignore[arg-type]
    check_fields(f"{kind} {name!r}", found.make, found.fields(), fields)
    return found.make(**{**found.preset, **fields})


def _kind_of(name: str) -> Kind:
    """The only kind that has a component of this name."""
    _load_all()
    kinds = [kind for kind, known in _entries if known == name and kind != "part"]
    if not kinds:
        raise UnknownName.among("component", name, sorted({known for kind, known in _entries if kind != "part"}))
    if len(kinds) > 1:
        raise BadInput(f"{name!r} is the name of a {' and of a '.join(kinds)}: say which, find({kinds[0]!r}, {name!r})")
    return kinds[0]


def names(kind: Kind) -> list[str]:
    _load_all()
    return sorted(name for (known, name), item in _entries.items() if known == kind and not item.is_alias)


def aliases(kind: Kind, of: str = "") -> dict[str, Entry]:
    """Other packages' names for components of this kind, or for one of them."""
    _load_all()
    make = _entries[kind, of].make if of else None
    found = {name: item for (known, name), item in sorted(_entries.items()) if known == kind and item.is_alias}
    return {name: item for name, item in found.items() if make is None or item.make is make}


def class_named(kind: Kind, name: str, module: str) -> Any:
    """A registered component by the name of its class, for `from heatproof.methods import IntegratedGradients`."""
    if name[:1].isupper():  # lower-case names are submodules, which the import system finds
        _load_all()
        found = [known.make for (known_kind, _), known in _entries.items() if known_kind == kind]
        for make in found:
            if make.__name__ == name:
                return make
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def class_names(kind: Kind) -> list[str]:
    """The names of all registered classes of a kind."""
    _load_all()
    return sorted({known.make.__name__ for (known_kind, _), known in _entries.items() if known_kind == kind})


def name_of(component: object) -> tuple[Kind, str] | None:
    """The kind and name under which the component's class is registered, or None."""
    for (kind, name), known in _entries.items():
        if known.make is type(component) and not known.is_alias:
            return kind, name
    return None
