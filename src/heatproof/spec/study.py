"""What is asked: a cross product of models, data sets, methods and metrics, as data that can be stored and replayed."""

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
from heatproof.types import AnyMethod, Dataset, Metric, Model, check_network

Target = Literal["predicted", "label"]
Sample = Literal["balanced", "first", "random"]


@dataclass(frozen=True, eq=False)
class Study:
    """Judge every method with every metric, on every data set and model.

    Anything may be given by name (`"saliency"`, `"embedded:object"`, a folder of pictures) or as the thing itself; any
    function `(model, batch) -> maps` is a method.
    """

    models: Sequence[Model | str]
    datasets: Sequence[Dataset | str]
    methods: Sequence[AnyMethod | str]
    metrics: Sequence[Metric | str]
    protocol: str = ""  # which protocol this is, for the report's own section
    seed: int = 0
    limit: int | None = None  # so many pictures of each data set,
    sample: Sample = "balanced"  # by the seed, the classes alike; `first`: as they come; `random`: by the seed alone
    shard: int = 16  # pictures per unit of work; the unit of storage, so not to be changed within a run directory
    target: Target = "predicted"  # the class explained: what the model says, or the true one
    notes: dict[str, Any] = field(default_factory=dict)  # settings of the protocol, for its section of the report
    file: str = ""  # the Python file it was written in: a replay may need what only that file knows,
    folder: str = ""  # and paths begin here: the working directory, if not said

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
        study_file.check_numbers(self.seed, self.limit, self.shard)
        if self.sample not in get_args(Sample):
            raise BadInput(f"sample must be {', '.join(map(repr, get_args(Sample)))}, got {self.sample!r}")
        if self.target not in ("predicted", "label"):
            raise BadInput(f"target must be 'predicted' or 'label', got {self.target!r}")

    def plain(self) -> dict[str, Any]:
        """JSON-ready; `Study.from_plain` is its inverse."""
        components = {name: recipe.plain(tuple(getattr(self, name))) for name in ("datasets", "methods", "metrics")}
        chosen = ("protocol", "seed", "limit", "sample", "shard", "target", "notes", "file")
        return {
            "models": [
                {"spec": model.name, "from": _whole(model.name), "revision": model.revision}  # type: ignore[union-attr]
                for model in self.models
            ],
            **components,
            "pictures": self.pictures,
            **{name: recipe.plain(getattr(self, name)) for name in chosen},
            "folder": self.folder or str(Path.cwd()),
        }

    @classmethod
    def from_plain(cls, stored: dict[str, Any], trust_pickle: bool = False, trust_code: bool = False) -> Study:
        """The study that `plain` described. Code that it names is refused without `trust_code`."""
        study_file.check(stored, "study")
        if not trust_code:
            user_code.refuse(user_code.named([stored]))
        return cls._of_checked(stored, _Trust(trust_pickle, trust_code))

    @classmethod
    def _of_checked(cls, stored: dict[str, Any], trust: _Trust) -> Study:
        stored = {"sample": "first", **replay.found_here(stored)}  # as studies were cut before they said how
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
        """Which pictures of a data set are judged, in this order."""
        if self.sample == "random":
            return shuffled(dataset, self.limit, self.seed)
        count = len(dataset) if self.limit is None else min(self.limit, len(dataset))
        return tuple(range(count)) if self.sample == "first" else sample(dataset, self.limit, self.seed)

    @cached_property
    def pictures(self) -> list[str | None]:
        """A digest of each data set's pictures, of those on disk: other people's files may change."""
        digests: list[str | None] = []
        for dataset in self.datasets:
            files = on_disk(dataset)
            places = self.places(files) if files is dataset else range(len(files)) if files else ()
            digests.append(files.digest(places) if files else None)
        return digests


@dataclass(frozen=True)
class _Trust:
    """What a stored study may run: pickles as weights, the code it names, and models that the caller names."""

    pickle: bool = False
    code: bool = False
    models: frozenset[str] = frozenset()

    def guard(self, spec: str = "") -> AbstractContextManager[None]:
        return nullcontext() if self.code or spec in self.models else no_user_code()


Written = Callable[[], Sequence[Study]]  # the studies of the Python file that a stored one was written in


def _written(stored: Mapping[str, Any], trust: _Trust) -> Sequence[Study]:
    file = stored.get("file", "")
    if not file or not any_path.is_file(file):
        return ()
    if not trust.code:
        raise UntrustedCode(
            f"The study was written in {file}, which may define it: read that file; if you trust it, "
            "pass --trust-code (trust_code=True) to run it"
        )
    with _in_folder(stored):
        return load(file)


def _elsewhere(written: Written, error: HeatproofError) -> Sequence[Study]:
    """The studies of the file that a stored one was written in, after `error`, which is the reason to look there."""
    try:
        return written()
    except UntrustedCode as refused:
        raise UntrustedCode(f"{error}. {refused}") from error


@contextmanager
def _in_folder(stored: Mapping[str, Any]) -> Iterator[None]:
    """In the folder a study was run in, from which no module is imported: '' in Python's path is wherever one is."""
    folder = stored.get("folder", "")
    if not folder or not any_path.is_dir(folder):
        yield
        return
    here, blank = str(Path.cwd()), "" in sys.path
    sys.path[:] = [place or here for place in sys.path]  # in place: user code that is trusted adds its own folder
    try:
        with chdir(folder):
            yield
    finally:
        if blank:
            sys.path[sys.path.index(here)] = ""


def _components(stored: Mapping[str, Any], written: Written, trust: _Trust) -> dict[str, Any]:
    """The stored data sets, methods and metrics; those of one's own come from the file the study was written in."""
    with _in_folder(stored):
        return {
            kind: tuple(_same_component(wanted, kind, written, trust) for wanted in stored[kind])
            for kind in ("datasets", "methods", "metrics")
        }


def _same_component(wanted: Any, kind: str, written: Written, trust: _Trust) -> Any:
    """What a stored recipe describes or, of what has no name to be found by, what the study's file makes again."""
    try:
        with trust.guard():
            return recipe.build(wanted, trust_code=trust.code)
    except HeatproofError as error:
        made = [
            part for study in _elsewhere(written, error) for part in getattr(study, kind)
        ]  # this registers what was not known, too
        same = [part for part in made if recipe.plain(part) == wanted]
        if same:
            return same[0]
        if isinstance(error, UnknownName) and made:
            return recipe.build(wanted, trust_code=trust.code)
        raise


def on_disk(dataset: Any) -> Any:
    """The data set whose pictures are files: this one, or the one it is made of; None if there is none."""
    if getattr(dataset, "path", ""):
        return dataset
    return on_disk(dataset.of) if hasattr(dataset, "of") else None


def _whole(spec: str) -> str:
    """A model's spec with the whole path of its file or weights, if it has one: it must be found from anywhere."""
    place, _, factory = spec.rpartition(":")
    if place.endswith(".py"):
        return f"{any_path.expanded(place).absolute()}:{factory}"
    name, mark, file = spec.partition("@" if "@" in spec or not spec.startswith("hf:") else ":")
    there = any_path.expanded(file)
    return f"{name}{mark}{there.absolute()}" if file and any_path.exists(there) else spec


def _same_model(wanted: Mapping[str, Any], written: Written, trust: _Trust) -> Model:
    """A stored study's model by the name it had or, from another directory, by its whole path, or from its file."""
    whole = wanted.get("from", wanted["spec"])
    spec = wanted["spec"] if _whole(wanted["spec"]) == whole else whole
    try:
        with trust.guard(wanted["spec"]):
            model = _named_model(spec, trust.pickle)
    except HeatproofError as error:
        made = [one for study in _elsewhere(written, error) for one in study.models if one.name == spec]  # type: ignore[union-attr]
        if not made:
            raise
        model = made[0]  # type: ignore[assignment]
    if wanted.get("revision", model.revision) != model.revision:
        raise BadInput(
            f"model {spec!r} has other weights now ({model.revision}) than in the stored study "
            f"({wanted['revision']}): its numbers would not be comparable"
        )
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

    `models` and `images` say where the models and pictures of a `study.json` are now, if elsewhere. A `study.json` is
    data: code that it names runs only with `trust_code`. A Python file is code, and runs.
    """
    path = Path(path)
    if path.suffix == ".py":
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
