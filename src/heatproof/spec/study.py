"""A study: a cross product of models, data sets, methods and metrics, as data that can be stored and replayed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from heatproof.data._support.sample import sample, shuffled
from heatproof.errors import BadInput, HeatproofError, UnknownName, UntrustedCode
from heatproof.spec import recipe, replay, study_file, user_code
from heatproof.spec.parse import parse
from heatproof.spec.user_files import no_user_code, own_file
from heatproof.storage import any_path
from heatproof.traits import dataset_traits
from heatproof.types import AnyMethod, Dataset, Metric, Model, check_network

Sample = Literal["balanced", "first", "random"]


@dataclass(frozen=True, eq=False)
class Study:
    """Judges every method with every metric, on every data set and model.

    Anything may be given by name (`"saliency"`, `"embedded:object"`, a folder of pictures) or as the thing itself; any
    function `(model, batch) -> maps` is a method.
    """

    models: Sequence[Model | str]
    datasets: Sequence[Dataset | str]
    methods: Sequence[AnyMethod | str]
    metrics: Sequence[Metric | str]
    protocol: str = ""  # which protocol this is, for the report's own section
    seed: int = 0
    limit: int | None = None  # number of pictures of each data set,
    sample: Sample = (
        "balanced"  # drawn by the seed, balanced over classes; `first`: in their order; `random`: by the seed alone
    )
    shard: int = 16  # pictures per unit of work; also the unit of storage, so fixed within a run directory
    repeats: int = 2  # other seeds under which random methods explain a few pictures again; 0: none
    target: str = "predicted"  # what is explained: `predicted`, `label` (the true one), or one by index or name
    notes: dict[str, Any] = field(default_factory=dict)  # settings of the protocol, for its section of the report
    file: str = ""  # the Python file that defines it, which a replay may need,
    folder: str = ""  # and the folder that paths are relative to; default: the working directory

    @classmethod
    def load(cls, path: str | Path, *, trust_pickle: bool = False, trust_code: bool = False) -> list[Study]:
        """The studies of a study.json (data) or a STUDY.py (code, which runs)."""
        return load(path, trust_pickle, trust_code=trust_code)

    def __post_init__(self) -> None:
        from heatproof import data, models

        resolve: dict[str, Callable[[str], Any]] = {
            "models": models.load,
            "datasets": data.load,
            "methods": lambda text: parse("method", text),
            "metrics": lambda text: parse("metric", text),
        }
        for name, find in resolve.items():
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence):
                given = (given,)
            parts = tuple(find(item) if isinstance(item, str) else item for item in given)
            if not parts:
                raise BadInput(f"a study needs at least one of {name}, got none")
            distinct(name, [recipe.label(part) for part in parts])
            object.__setattr__(self, name, parts)
        for model in self.models:
            if isinstance(model, Model):
                check_network(model.network, model.name)
        for dataset in self.datasets:
            if not hasattr(type(dataset), "__len__") or not hasattr(type(dataset), "batch"):
                raise BadInput(f"{recipe.label(dataset)!r} must be a data set, got {type(dataset).__name__}")
        for part in (*self.methods, *self.metrics):
            if not callable(part):
                raise BadInput(f"{recipe.label(part)!r} must be a method or metric, got {type(part).__name__}")
        for metric in self.metrics:
            if not isinstance(getattr(metric, "higher_is_better", None), bool):
                raise BadInput(f"metric {recipe.label(metric)!r} must say whether higher_is_better, true or false")
        study_file.check_numbers(self.seed, self.limit, self.shard, self.repeats)
        if self.sample not in get_args(Sample):
            raise BadInput(f"sample must be {', '.join(map(repr, get_args(Sample)))}, got {self.sample!r}")
        if not isinstance(self.target, str) or not self.target.strip():
            raise BadInput(
                f"target must be 'predicted', 'label', or the index or name of a class, label or value, got "
                f"{self.target!r}"
            )

    def plain(self) -> dict[str, Any]:
        """JSON-ready data; `Study.from_plain` is the inverse."""
        components = {name: recipe.plain(tuple(getattr(self, name))) for name in ("datasets", "methods", "metrics")}
        chosen = ("protocol", "seed", "limit", "sample", "shard", "repeats", "target", "notes", "file")
        return {
            "models": [
                {
                    "spec": model.name,  # type: ignore[union-attr]
                    "from": _whole(model.name),  # type: ignore[union-attr]
                    "revision": model.revision,  # type: ignore[union-attr]
                    **({"output": model.declared} if model.declared else {}),  # type: ignore[union-attr]
                }
                for model in self.models
            ],
            **components,
            "pictures": self.pictures,
            **{name: recipe.plain(getattr(self, name)) for name in chosen},
            "folder": self.folder or str(Path.cwd()),
        }

    @classmethod
    def from_plain(cls, stored: dict[str, Any], trust_pickle: bool = False, trust_code: bool = False) -> Study:
        """The study that `plain` described. Refuses code that it names unless `trust_code`."""
        study_file.check(stored, "study")
        if not trust_code:
            user_code.refuse(user_code.named([stored]))
        return cls._of_checked(stored, _Trust(trust_pickle, trust_code))

    @classmethod
    def _of_checked(cls, stored: dict[str, Any], trust: _Trust) -> Study:
        stored = {"sample": "first", "repeats": 0, **replay.found_here(stored)}  # of studies without these fields
        written = cache(lambda: _written(stored, trust))
        loaded = [_same_model(wanted, written, trust) for wanted in stored["models"]]
        components = _components(stored, written, trust)
        chosen = {f.name for f in dataclasses.fields(cls)} - {"models", *components}
        rest = {name: value for name, value in stored.items() if name in chosen}
        study = cls(models=loaded, **components, **rest)
        for dataset, before, now in zip(study.datasets, stored.get("pictures", ()), study.pictures, strict=False):
            if before != now:
                raise BadInput(
                    f"data set {recipe.label(dataset)!r} holds other pictures now than in the stored study: "
                    "its numbers would not be comparable"
                )
        return study

    def places(self, dataset: Any) -> tuple[int, ...]:
        """The indices of the judged pictures of a data set, in order."""
        if self.sample == "random":
            return shuffled(dataset, self.limit, self.seed)
        count = len(dataset) if self.limit is None else min(self.limit, len(dataset))
        return tuple(range(count)) if self.sample == "first" else sample(dataset, self.limit, self.seed)

    @cached_property
    def pictures(self) -> list[str | None]:
        """A digest of each data set's pictures if they are on disk, where files may change; else None."""
        digests: list[str | None] = []
        for dataset in self.datasets:
            files = on_disk(dataset)
            places = self.places(files) if files is dataset else range(len(files)) if files else ()
            digests.append(files.digest(places) if files else None)
        return digests


@dataclass(frozen=True)
class _Trust:
    """What a stored study may run: pickles as weights, the code it names, and models given by the caller."""

    pickle: bool = False
    code: bool = False
    models: frozenset[str] = frozenset()

    def guard(self, spec: str = "") -> AbstractContextManager[None]:
        return nullcontext() if self.code or spec in self.models else no_user_code()


Written = Callable[[], Sequence[Study]]  # the studies of the Python file that defines a stored one


def _written(stored: Mapping[str, Any], trust: _Trust) -> Sequence[Study]:
    file = stored.get("file", "")
    if not file or not any_path.is_file(file):
        return ()
    if not trust.code:
        raise UntrustedCode(
            f"The study comes from {file}, which may define what is missing: read that file; if you trust it, "
            "pass --trust-code (trust_code=True) to run it"
        )
    with _in_folder(stored):
        return load(file)


def _elsewhere(written: Written, error: HeatproofError) -> Sequence[Study]:
    """The studies of the Python file that defines a stored one; `error` is the reason to look there."""
    try:
        return written()
    except UntrustedCode as refused:
        raise UntrustedCode(f"{error}. {refused}") from error


@contextmanager
def _in_folder(stored: Mapping[str, Any]) -> Iterator[None]:
    """Runs in the study's folder. Modules are not imported from it: '' in Python's path, which means the current
    folder, is replaced."""
    folder = stored.get("folder", "")
    if not folder or not any_path.is_dir(folder):
        yield
        return
    here, blank = str(Path.cwd()), "" in sys.path
    sys.path[:] = [place or here for place in sys.path]  # in place, since trusted user code adds its own folder
    try:
        with chdir(folder):
            yield
    finally:
        if blank:
            sys.path[sys.path.index(here)] = ""


def _components(stored: Mapping[str, Any], written: Written, trust: _Trust) -> dict[str, Any]:
    """The stored data sets, methods and metrics; user-defined ones come from the Python file that defines the study."""
    with _in_folder(stored):
        return {
            kind: tuple(_same_component(wanted, kind, written, trust) for wanted in stored[kind])
            for kind in ("datasets", "methods", "metrics")
        }


def _same_component(wanted: Any, kind: str, written: Written, trust: _Trust) -> Any:
    """The component a stored recipe describes or, if it cannot be imported by name, the one the study's file makes."""
    try:
        with trust.guard():
            return recipe.build(wanted, trust_code=trust.code)
    except HeatproofError as error:
        made = [
            part for study in _elsewhere(written, error) for part in getattr(study, kind)
        ]  # also registers what the file defines
        same = [part for part in made if recipe.plain(part) == wanted]
        if same:
            return same[0]
        if isinstance(error, UnknownName) and made:
            return recipe.build(wanted, trust_code=trust.code)
        raise


def on_disk(dataset: Any) -> Any:
    """The data set that reads picture files: this one, or the one it is made of; None if there is none."""
    traits = dataset_traits(dataset)
    if traits.path:
        return dataset
    return None if traits.of is None else on_disk(traits.of)


def _whole(spec: str) -> str:
    """A model's spec with an absolute path of its file or weights, if it has one, to be found from anywhere."""
    place, _, factory = spec.rpartition(":")
    if place.endswith(".py"):
        return f"{any_path.expanded(place).absolute()}:{factory}"
    name, mark, file = spec.partition("@" if "@" in spec or not spec.startswith("hf:") else ":")
    there = any_path.expanded(file)
    return f"{name}{mark}{there.absolute()}" if file and any_path.exists(there) else spec


def _same_model(wanted: Mapping[str, Any], written: Written, trust: _Trust) -> Model:
    """A stored study's model by its name or, from another directory, by its absolute path, or from the study's file."""
    whole = wanted.get("from", wanted["spec"])
    spec = wanted["spec"] if _whole(wanted["spec"]) == whole else whole
    try:
        with trust.guard(wanted["spec"]):
            model = _named_model(spec, trust.pickle)
    except HeatproofError as error:
        made = [model for study in _elsewhere(written, error) for model in study.models if model.name == spec]  # type: ignore[union-attr]
        if not made:
            raise
        model = made[0]  # type: ignore[assignment]
    if wanted.get("revision", model.revision) != model.revision:
        raise BadInput(
            f"model {spec!r} has other weights now ({model.revision}) than in the stored study "
            f"({wanted['revision']}): its numbers would not be comparable"
        )
    if wanted.get("output") is not None:
        model = dataclasses.replace(model, output=wanted["output"], probabilities=None)
    return model


def _named_model(spec: str, trust_pickle: bool) -> Model:
    from heatproof import models

    try:
        return models.load(spec, trust_pickle=trust_pickle)
    except UnknownName as error:
        if ":" in spec:
            raise
        raise UnknownName(
            f"model {spec!r} was made in Python (or by a plug-in that is not installed here): run its script again, "
            "or name it by file.py:factory"
        ) from error


def distinct(kind: str, labels: list[str]) -> None:
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise BadInput(f"{kind} must have different labels, got twice: {', '.join(repeated)}; leave one out or name it")


def dump(studies: Sequence[Study]) -> dict[str, Any]:
    return {"heatproof_study": 1, "studies": [study.plain() for study in studies]}


def load(
    path: str | Path,
    trust_pickle: bool = False,
    models: Sequence[str] = (),
    images: Sequence[str] = (),
    trust_code: bool = False,
) -> list[Study]:
    """Studies from a `study.json` that a run wrote, or from a Python file that defines `study` or `studies`.

    `models` and `images` give new paths of the models and pictures of a `study.json`. A `study.json` is
    data: code that it names runs only with `trust_code`. A Python file is code, and runs.
    """
    path = any_path.folder(path)
    if path.suffix == ".py":
        if any_path.is_remote(path):
            raise BadInput(f"{path} is code, which runs from files of this machine only: copy it here")
        return _of_python(path)
    stored = study_file.read(path)
    if not trust_code:
        user_code.refuse(user_code.named(stored, models_too=not models))
    trust = _Trust(trust_pickle, trust_code, frozenset(models))
    return [Study._of_checked(item, trust) for item in replay.told_anew(stored, models, images)]


def _of_python(path: Path) -> list[Study]:
    module = own_file(path)
    found = getattr(module, "studies", None) or getattr(module, "study", None)
    listed = found if isinstance(found, Sequence) else (found,)
    studies = [study for study in listed if isinstance(study, Study)]
    if not studies or len(studies) < len(listed):
        raise BadInput(f"{path} must define `study` (a heatproof.Study) or `studies` (a list of them)")
    where = {"file": str(path.absolute()), "folder": str(Path.cwd())}
    return [dataclasses.replace(study, **where) for study in studies]  # type: ignore[arg-type]
