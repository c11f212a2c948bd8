"""Parcels: how the parts of a run travel to workers on other machines.

Models, data sets and studies are shared by many parts: each is a parcel, packed once and unpacked once by a worker.
Components travel as their classes and fields, models by their names, and both are made anew by the worker. Only what
has no name is pickled whole: a network made in Python or by a user file. User code travels by value, since its files
are not on other machines.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import io
import pickle
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from ray import cloudpickle

from heatproof import models, registry
from heatproof.errors import BadInput, BadModel
from heatproof.spec import recipe, source_hash
from heatproof.spec.study import Study
from heatproof.traits import parts_of
from heatproof.types import Dataset, Model


class Packer:
    """Packs parts, and what they share into parcels of its own."""

    def __init__(self) -> None:
        self.parcels: dict[str, bytes] = {}
        self._keys: dict[int, str] = {}
        self._met: list[object] = []  # keeps them alive, since Python reuses the id of a deleted object

    def pack(self, part: object) -> bytes:
        """A part as bytes; the parcels it refers to are in `parcels` then."""
        with _user_code_by_value():
            return self._packed(part)

    def _packed(self, thing: object) -> bytes:
        buffer = io.BytesIO()
        _Pickler(buffer, self, thing).dump(thing)
        return buffer.getvalue()

    def key(self, thing: object) -> str | None:
        """The key of the parcel that holds this thing, packed at first sight; None for what is no parcel."""
        if not _is_parcel(type(thing)):  # type: ignore[arg-type]  # types are hashable
            return None
        if id(thing) not in self._keys:
            self._met.append(thing)
            key = self._keys[id(thing)] = f"parcel {len(self._met)}"
            self.parcels[key] = self._packed(thing)
        return self._keys[id(thing)]


class Unpacker:
    """Unpacks parts on a worker. What they share is made once, and models are put on its device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._made: dict[str, Any] = {}

    def unpack(self, packed: bytes, fetch: Callable[[str], bytes]) -> Any:
        """`fetch` gets a parcel by its key."""

        def shared(key: str) -> Any:
            if key not in self._made:
                made = self.unpack(fetch(key), fetch)
                self._made[key] = made.to(self._device) if isinstance(made, Model) else made
            return self._made[key]

        reader = _Unpickler(io.BytesIO(packed))
        reader.shared = shared
        return reader.load()


def refuse(study: Study) -> None:
    """Raises `BadInput` for a component that cannot travel, by name."""
    kinds = {"model": study.models, "data set": study.datasets, "method": study.methods, "metric": study.metrics}
    for kind, components in kinds.items():
        for component in components:
            try:
                Packer().pack(component)
            except Exception as error:
                raise BadInput(
                    f"{kind} {recipe.label(component)!r} cannot travel to workers on other machines "
                    f"({type(error).__name__}: {error}): make it of plain values and of functions and classes at the "
                    "top of a file, or run it with --on local"
                ) from error


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, packer: Packer, root: object) -> None:
        super().__init__(file)
        self._packer, self._root = packer, root

    def persistent_id(self, thing: Any) -> str | None:
        return None if thing is self._root else self._packer.key(thing)

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, Model):
            return _model(thing)
        if isinstance(thing, Study):
            return _study_of, (*_without_data(thing),)
        if _is_made_of_fields(type(thing)):  # type: ignore[arg-type]
            fields = _fields(thing)
            if _is_parcel(type(thing)):  # type: ignore[arg-type]
                return _same_pictures, (type(thing), fields, thing.digest((0,)) if len(thing) else "")
            return _made, (type(thing), fields)
        if isinstance(thing, functools._lru_cache_wrapper) and not _is_importable(thing):
            return _cached, (thing.__wrapped__, thing.cache_parameters())
        if isinstance(thing, functools.cached_property):  # it has a lock, which cannot be pickled
            return _cached_property, (thing.func, thing.attrname)
        return super().reducer_override(thing)


class _Unpickler(pickle.Unpickler):
    shared: Callable[[str], Any]

    def persistent_load(self, key: str) -> Any:
        return self.shared(key)


@functools.cache
def _is_parcel(kind: type) -> bool:
    """Models, studies and data sets, by their type: every object that is packed is tested."""
    return issubclass(kind, Model | Study) or all(hasattr(kind, name) for name in ("batch", "ids", "digest"))


@functools.cache
def _is_made_of_fields(kind: type) -> bool:
    """Frozen dataclasses hold nothing beside their fields but what can be made again (caches)."""
    if not dataclasses.is_dataclass(kind):
        return False
    settings = kind.__dataclass_params__  # type: ignore[attr-defined]
    return settings.frozen and settings.init and all(field.init for field in dataclasses.fields(kind))


def _is_importable(function: Any) -> bool:
    return "<locals>" not in function.__qualname__ and not source_hash.is_own(function)


def _cached(function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """A cached function, whose cache begins anew."""
    return functools.lru_cache(**settings)(function)


def _cached_property(function: Callable[[Any], Any], name: str) -> functools.cached_property[Any]:
    made = functools.cached_property(function)
    made.__set_name__(object, name)
    return made


def _fields(thing: Any, *without: str) -> dict[str, Any]:
    return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing) if f.name not in without}


def _made(kind: type, fields: Mapping[str, Any]) -> Any:
    return kind(**fields)


def _same_pictures(kind: type, fields: Mapping[str, Any], digest: str) -> Dataset:
    """The data set, whose first picture must be the driver's: another machine may have other files, or none."""
    made: Dataset = kind(**fields)
    try:
        same = not digest or made.digest((0,)) == digest
    except (OSError, BadInput, LookupError) as error:
        raise BadInput(f"{_other(made)}: {error}") from error
    if not same:
        raise BadInput(f"{_other(made)}: its first picture is another one")
    return made


def _other(dataset: Dataset) -> str:
    return (
        f"data set {recipe.label(dataset)!r} is not on {platform.node()} as it is where the run was started (every "
        "machine must see the pictures under the same path)"
    )


def _model(model: Model) -> tuple[Any, ...]:
    if models.found_elsewhere(model.name):
        return _same_model, (model.name, _fields(model, "name", "network"), model.revision)
    fields = _fields(model)
    if model.device.type != "cpu":
        fields["network"] = copy.deepcopy(model.network).cpu()
    return _made, (Model, fields)


def _same_model(name: str, fields: Mapping[str, Any], revision: str) -> Model:
    """The model of this name, if it has the driver's weights."""
    made = dataclasses.replace(models.load(name), **fields)
    if made.revision != revision:
        raise BadModel(
            f"model {name!r} on {platform.node()} is not the one of the driver: its weights, layers or preprocessing "
            f"differ (revision {made.revision}, wanted {revision}). If it was changed in Python, give it another name"
        )
    return made


def _without_data(study: Study) -> tuple[dict[str, Any], list[tuple[registry.Kind, str, Any]]]:
    """What work on a shard needs of a study: not all its models and data sets; and the names of user-defined classes,
    which only the file that defines them knows.
    """
    every = [part for one in (*study.methods, *study.metrics) for part in parts_of(one)]
    named = [(*known, type(part)) for part in every if (known := registry.name_of(part))]
    own = [entry for entry in dict.fromkeys(named) if source_hash.is_own(entry[2])]
    return {**_fields(study), "models": (), "datasets": (), "notes": {}}, own


def _study_of(fields: Mapping[str, Any], own: Sequence[tuple[registry.Kind, str, Any]]) -> Study:
    for kind, name, make in own:
        registry.register(kind, make, name)
    study = object.__new__(Study)  # a study is never made without models
    for name, value in fields.items():
        object.__setattr__(study, name, value)
    return study


@contextmanager
def _user_code_by_value() -> Iterator[None]:
    """User files are packed with what refers to them; installed packages are looked up by name."""
    known = cloudpickle.list_registry_pickle_by_value()
    own = [
        module
        for name, module in list(sys.modules.items())
        if name not in ("__main__", *known) and isinstance(module, ModuleType) and _is_own(name, module)
    ]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


_seen: dict[str, tuple[ModuleType, bool]] = {}  # there are thousands of modules, and a run packs thousands of parts


def _is_own(name: str, module: ModuleType) -> bool:
    if name not in _seen or _seen[name][0] is not module:
        _seen[name] = module, module.__name__ == name and source_hash.is_own(module)
    return _seen[name][1]
