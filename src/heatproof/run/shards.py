"""Shards: some pictures of one data set under one model, with the keys of the units of work on them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from heatproof import engine
from heatproof.data import named_by, seen_by
from heatproof.data._support.class_order import alphabetical
from heatproof.data._support.value_range import warn_of_narrow
from heatproof.errors import BadInput
from heatproof.models._support.outputs import SHOWN, recognised
from heatproof.models._support.targets import CHOSEN, target_index
from heatproof.run.repeats import repeated_methods, repeated_pictures
from heatproof.run.rows_of_labels import per_label
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import bound_to, dataset_traits, metric_traits
from heatproof.types import AnyMethod, Batch, Dataset, Model

SAMPLED = 16  # pictures, at least, of which the first is explained again: it costs a sixteenth of explaining, or two
EDITION = 9  # of what components mean: numbers of another one answer other questions and are computed anew

LARGEST = 1024  # pixels on a side of pictures that are shown as they are: a camera's would take minutes each


@dataclass(frozen=True, eq=False)
class Shard:
    """Some pictures of one data set under one model, and the units of work on them by (method, metric)."""

    study: Study
    model: Model
    dataset: Dataset
    indices: tuple[int, ...]
    ids: tuple[str, ...]
    gallery: Mapping[str, str]  # method label -> where its maps are kept for looking at, if they are
    units: Mapping[tuple[str, str], str]  # (method label, metric label) -> key
    key: str  # of the shard itself: what its pictures are to the model is kept under it
    guessed: tuple[str, ...]  # class names that were numbered in alphabetical order
    repeat: int = 0  # which other seed its methods have; 0: the study's own
    sampled: bool = False  # whether its first picture is explained again, in double precision

    @cached_property
    def methods(self) -> tuple[AnyMethod, ...]:
        """The study's methods as they are on this data set."""
        return tuple(bound_to(method, self.dataset) for method in self.study.methods)  # type: ignore[misc]

    @cached_property
    def place(self) -> dict[str, str]:
        return {"dataset": recipe.label(self.dataset), "model": self.model.name}


def shards(study: Study, device: torch.device) -> Iterator[Shard]:
    """Cut each data set into shards and key their units: images, weights, recipes, seed; never the machine."""
    # Once: a recipe of user code is read from all that it reaches, and an object may change while it works.
    methods = {recipe.label(method): recipe.plain(method) for method in study.methods}
    metrics = {recipe.label(metric): recipe.plain(metric) for metric in study.metrics}
    lucky = {recipe.label(method) for method in repeated_methods(study)}
    models: dict[Model, Model] = {}  # as given -> as its answers show it to be
    for given in study.datasets:
        for named in study.models:
            assert isinstance(named, Model)
            named.to(device)
            dataset = fitted(given, named, study)  # type: ignore[arg-type]
            ids = dataset.ids()
            if not ids:
                raise BadInput(f"data set {recipe.label(dataset)!r} has no pictures")
            places = study.places(dataset)
            if named not in models:
                first = dataset.batch(places[:SHOWN])
                warn_of_narrow(first)
                models[named] = recognised(named, first.images)
            model = models[named]
            _check_several(dataset, model, study)
            guessed = alphabetical(dataset)
            if model.several:
                dataset, places = per_label(dataset, model, study)
                ids = dataset.ids()
            here = ((method, bound_to(method, dataset)) for method in study.methods)
            recipes = methods | {recipe.label(one): recipe.plain(one) for method, one in here if one is not method}
            again = places[: repeated_pictures(len(places))]
            repeats = [(again, repeat) for repeat in range(1, study.repeats + 1) if again and lucky]
            parts = [(places[at : at + study.shard], 0) for at in range(0, len(places), study.shard)]
            traits = dataset_traits(dataset)
            for indices, repeat in [*parts, *repeats]:
                common = [
                    EDITION,
                    dataset.digest(indices),
                    model.revision,
                    model.task,
                    study.seed,
                    traits.target or study.target,
                    recipe.plain(None if traits.view is ... else traits.view),
                    *_read_as(model),
                    *(["reference"] if engine.current().kind == "reference" else []),
                    *([{"repeat": repeat}] if repeat else []),
                ]
                units = {
                    (method, metric): recipe.key([*common, recipes[method], metrics[metric]])
                    for method in methods
                    if not repeat or method in lucky
                    for metric in metrics
                }
                names = tuple(ids[i] for i in indices)
                place = [recipe.label(dataset), model.name]
                key = recipe.key([*place, *common])
                folder = f"gallery/{key}"
                files = {name: f"{folder}/{recipe.key(plain)}.npz" for name, plain in recipes.items()}
                opening = not repeat and indices[0] == places[0]
                shown = files if opening else {}
                sampled = opening and len(places) >= SAMPLED
                yield Shard(study, model, dataset, indices, names, shown, units, key, guessed, repeat, sampled)


def _read_as(model: Model) -> list[str]:
    """What the keys say of the kind of output; nothing for the logits of a softmax."""
    known = {"softmax": [], "softmax:probabilities": ["probabilities"]}
    return known.get(model.reading, [model.reading])


def fitted(dataset: Dataset, model: Model, study: Study) -> Dataset:
    """The data set as this model wants to see it, with the model's classes where the study asks about labels."""
    whole = dataset_traits(dataset).fitted is not None  # one made of other data sets knows all of that itself
    dataset = seen_by(model, dataset)
    if whole:
        return dataset
    if dataset_traits(dataset).uncut and not _has_one_size(dataset, model):
        raise BadInput(
            f"model {model.name!r} does not say which input size it wants and data set {recipe.label(dataset)!r} "
            f"has none: say factory.size = 224 in the model's file, or give the data set a view, e.g. "
            f"view=heatproof.View(size=224, resize=256); pictures of one size of up to {LARGEST} pixels need none"
        )
    # Folders named by class must mean the model's classes, not the k-th folder.
    return named_by(model, dataset) if by_label(study) else dataset


def _has_one_size(dataset: Dataset, model: Model) -> bool:
    """Whether the pictures can be shown at their own size, square or not: the first and the last have the same."""
    if model.fixed_size or not len(dataset):
        return False
    try:
        ends = dataset.batch(sorted({0, len(dataset) - 1})).images
    except BadInput:  # of different sizes
        return False
    return len(ends) > 0 and max(ends.shape[2:]) <= LARGEST


def by_label(study: Study) -> bool:
    """Whether the study needs the pictures' labels, numbered as the model does."""
    return study.target == "label" or any(metric_traits(metric).target == "label" for metric in study.metrics)


def _check_several(dataset: Dataset, model: Model, study: Study) -> None:
    """Pictures with several labels need a model of independent labels, if their labels are needed at all."""
    if model.question == "value" or model.several:
        return
    if by_label(study) and dataset_traits(dataset).several:
        one = f"a yes or no on {model.classes[-1]!r}" if model.question == "yes_no" else "one of its classes"
        raise BadInput(
            f"pictures of {recipe.label(dataset)!r} carry several labels, and model {model.name!r} answers with {one}: "
            "give each picture the one label that is to be explained, or use target='predicted', or declare "
            "output='sigmoid' if its outputs are independent labels (factory.output, --output)"
        )


def check_class_order(shard: Shard, count: int) -> None:
    """Folders named by class mean the model's classes; where it names none, the alphabet's order is but a guess."""
    names = shard.guessed if by_label(shard.study) else ()
    if not names:
        return
    few = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    message = (
        f"data set {recipe.label(shard.dataset)!r} names {len(names)} classes ({few}), and model {shard.model.name!r} "
        f"has {count} and does not say what they are called"
    )
    mend = "give the model its classes (factory.classes = […]), or name the sub-folders index_name"
    if len(names) != count:
        raise BadInput(f"{message}: {mend}")
    order = "they were numbered in the data set's own order (of folders and tables the alphabet's)"
    warnings.warn(f"{message}: {order}; if that is wrong, {mend}", stacklevel=2)


def aimed(shard: Shard) -> tuple[Batch, Tensor | None]:
    """The shard's pictures with the class to be explained set and the study's seed, and the model's answers."""
    batch = dataclasses.replace(shard.dataset.batch(shard.indices), seed=shard.study.seed).to(shard.model.device)
    target = dataset_traits(shard.dataset).target or shard.study.target  # mosaics know their own
    if not len(batch):
        return batch, None
    classes = engine.forward(shard.model, batch.images)
    if shard.model.question == "value":
        if target == "label":
            raise BadInput(
                f"target='label' explains the class of a picture, and model {shard.model.name!r} answers with a value: "
                "use target='predicted'"
            )
        if target not in (*CHOSEN, "given") and not shard.model.several:
            target_index(shard.model, classes.shape[1], target)  # or the reason why there is no such value
        return (batch if shard.model.several else batch.aimed(torch.zeros_like(batch.targets))), None
    if shard.model.several:  # whether the model finds the label of each row
        return batch, (classes.gather(1, batch.targets[:, None]) > 0).long().squeeze(1)
    if target == "given":  # the class is known; how often the model sees it there is a premise of the scores
        return batch, classes.argmax(1)
    check_class_order(shard, classes.shape[1])
    answers = classes.argmax(1)
    if target == "predicted":
        return batch.aimed(answers), answers
    if target != "label":
        index = target_index(shard.model, classes.shape[1], target)
        return batch.aimed(torch.full_like(batch.targets, index)), answers
    labels = batch.labels.get(shard.model.task)
    count = classes.shape[1]
    if labels is None or bool(((labels < 0) | (labels >= count)).any()):
        raise BadInput(
            f"target='label' needs a label from 0 to {count - 1} ({shard.model.task}) for every picture of "
            f"{recipe.label(shard.dataset)!r}: use target='predicted', or name the sub-folders index_name"
        )
    return batch.aimed(labels), answers
