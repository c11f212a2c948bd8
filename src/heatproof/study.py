"""What is asked: a cross product of models, data sets, methods and metrics, as data that can be stored and replayed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from heatproof import recipe
from heatproof.errors import BadInput
from heatproof.registry import Kind
from heatproof.types import AnyMethod, Dataset, Metric, Model

Target = Literal["predicted", "label"]


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
    limit: int | None = None  # the first so many pictures of each data set
    shard: int = 16  # pictures per unit of work; the unit of storage, so not to be changed within a run directory
    target: Target = "predicted"  # the class explained: what the model says, or the true one
    notes: dict[str, Any] = field(default_factory=dict)  # settings of the protocol, for its section of the report

    def __post_init__(self) -> None:
        from heatproof import data, models

        resolve: dict[str, Callable[[str], Any]] = {
            "models": models.load,
            "datasets": data.load,
            "methods": lambda text: recipe.parse("method", text),
            "metrics": lambda text: recipe.parse("metric", text),
        }
        for name, find in resolve.items():
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence):
                given = (given,)
            parts = tuple(find(item) if isinstance(item, str) else item for item in given)
            if not parts:
                raise BadInput(f"a study needs at least one of {name}, got none")
            _distinct(name, [recipe.label(part) for part in parts])
            object.__setattr__(self, name, parts)
        if self.limit is not None and self.limit < 1:
            raise BadInput(f"limit must be at least 1 picture, got {self.limit}")
        if self.shard < 1:
            raise BadInput(f"shard must be at least 1 picture, got {self.shard}")
        if self.target not in ("predicted", "label"):
            raise BadInput(f"target must be 'predicted' or 'label', got {self.target!r}")

    def plain(self) -> dict[str, Any]:
        """JSON-ready; `Study.from_plain` is its inverse."""
        components = {name: recipe.plain(tuple(getattr(self, name))) for name in ("datasets", "methods", "metrics")}
        chosen = ("protocol", "seed", "limit", "shard", "target", "notes")
        return {
            "models": [{"spec": model.name, "revision": model.revision} for model in self.models],  # type: ignore[union-attr]
            **components,
            **{name: recipe.plain(getattr(self, name)) for name in chosen},
        }

    @classmethod
    def from_plain(cls, stored: dict[str, Any]) -> Study:
        from heatproof import models

        loaded = []
        for wanted in stored["models"]:
            model = models.load(wanted["spec"])
            if wanted.get("revision", model.revision) != model.revision:
                raise BadInput(
                    f"model {wanted['spec']!r} has other weights now ({model.revision}) than in the stored study "
                    f"({wanted['revision']}): its numbers would not be comparable"
                )
            loaded.append(model)
        components = {name: recipe.build(stored[name]) for name in ("datasets", "methods", "metrics")}
        chosen = {f.name for f in dataclasses.fields(cls)} - {"models", *components}
        rest = {name: value for name, value in stored.items() if name in chosen}
        return cls(models=loaded, **components, **rest)


def _distinct(kind: str, labels: list[str]) -> None:
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise BadInput(f"{kind} must have different labels, got twice: {', '.join(repeated)}; leave one out or name it")


def dump(studies: Sequence[Study]) -> dict[str, Any]:
    return {"heatproof_study": 1, "studies": [study.plain() for study in studies]}


def load(path: str | Path) -> list[Study]:
    """Studies from a `study.json` that a run wrote, or from a Python file that defines `study` or `studies`."""
    path = Path(path)
    if path.suffix == ".py":
        module = recipe.from_file(path)
        found = getattr(module, "studies", None) or getattr(module, "study", None)
        if found is None:
            raise BadInput(f"{path} must define `study` (a heatproof.Study) or `studies` (a list of them)")
        return [found] if isinstance(found, Study) else list(found)
    try:
        stored = json.loads(path.read_text())
    except FileNotFoundError:
        raise BadInput(f"there is no study file {path}") from None
    except ValueError as error:
        raise BadInput(f"{path} must be a study.json that a run wrote; it is not JSON: {error}") from error
    if not isinstance(stored, dict) or "studies" not in stored:
        raise BadInput(f"{path} must be a study.json that a run wrote, with a list 'studies'")
    return [Study.from_plain(item) for item in stored["studies"]]


def components(kind: Kind, text: str) -> list[Any]:
    """Several components from one command-line word: commas outside brackets separate them."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [recipe.parse(kind, part) for part in parts if part.strip()]
