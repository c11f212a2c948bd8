"""The rows of a model with several labels or values: which labels of which pictures a study judges."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from heatproof import engine
from heatproof.data import named_by
from heatproof.data.per_label import PerLabel, Present, Row, present_in
from heatproof.errors import BadInput, HeatproofError
from heatproof.models._support.targets import needs_choice, target_index
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import dataset_traits
from heatproof.types import Dataset, Model

READ = 32  # pictures read at once to see which labels the model finds in them


def per_label(dataset: Dataset, model: Model, study: Study) -> tuple[PerLabel, tuple[int, ...]]:
    """The rows that the study judges, and their places: every label that is there, or that the model finds, or one."""
    if dataset_traits(dataset).target == "given":
        raise BadInput(
            f"{recipe.label(dataset)!r} asks where one of several classes is, and model {model.name!r} answers with "
            f"{model.width} labels or values that do not compete: give it the pictures themselves"
        )
    present = _present(dataset, model)
    names = model.classes or tuple(str(label) for label in range(model.width or 0))

    def rows_of(rows: Sequence[Row]) -> PerLabel:
        return PerLabel(dataset, tuple(rows), names, model.task, present)

    if study.target == "label":
        rows = [(place, label) for place, known in enumerate(present) if known for label in sorted(known.there)]
        _check(rows, len(dataset), study, dataset, model)
        every = rows_of(rows)
        return every, study.places(every)
    places = study.places(dataset)
    if study.target == "predicted":
        rows = _found(dataset, model, places)
        if not rows:
            raise BadInput(
                f"model {model.name!r} finds none of its {model.width} labels in any of {len(places)} pictures of "
                f"{recipe.label(dataset)!r}, so there is nothing to explain: name a label, as --target "
                f"{names[0]!r}, or take --target label where the pictures have labels"
            )
    else:
        label = target_index(model, model.width or 0, study.target)
        rows = [(place, label) for place in places]
    chosen = rows_of(rows)
    return chosen, tuple(range(len(chosen)))


def _present(dataset: Dataset, model: Model) -> Present:
    if model.kind == "regression":
        return (None,) * len(dataset)
    if model.classes and dataset_traits(dataset).unnamed:
        named = named_by(model, dataset)
        try:
            return present_in(named)
        except HeatproofError:  # names of something else: only a study of labels needs them
            return (None,) * len(dataset)
    return present_in(dataset)


def _check(rows: Sequence[Row], pictures: int, study: Study, dataset: Dataset, model: Model) -> None:
    if model.kind == "regression":
        raise BadInput(needs_choice(model))
    name, width = recipe.label(dataset), model.width or 0
    if not rows:
        raise BadInput(
            f"target='label' explains every label that a picture carries, and no picture of {name!r} has any: give a "
            "CSV with a column 'label' (Edema|Effusion) or a column 'label:NAME' for each label, or name one label, as "
            "--target NAME"
        )
    if (most := max(label for _, label in rows)) >= width:
        raise BadInput(
            f"data set {name!r} has labels up to {most}, and model {model.name!r} answers with {width}, 0 … "
            f"{width - 1}: number the labels as the model does, or give it their names (factory.classes)"
        )
    bare = pictures - len({picture for picture, _ in rows})
    if bare:
        warnings.warn(
            f"{bare} of {pictures} pictures of {name!r} carry no label, so there is nothing to explain in them: they "
            "are left out",
            stacklevel=5,
        )


def _found(dataset: Dataset, model: Model, places: Sequence[int]) -> list[Row]:
    """Every label that the model finds in each picture. A picture that cannot be read has one row, which says so."""
    if model.kind == "regression":
        raise BadInput(needs_choice(model))
    rows: list[Row] = []
    ids = dataset.ids()
    for start in range(0, len(places), READ):
        few = places[start : start + READ]
        batch = dataset.batch(few)
        found = (engine.forward(model, batch.images.to(model.device)) > 0).tolist() if len(batch) else []
        answers = dict(zip(batch.ids, found, strict=True))
        for place in few:
            if ids[place] in answers:
                rows += [(place, label) for label, there in enumerate(answers[ids[place]]) if there]
            else:
                rows.append((place, 0))
    return rows
