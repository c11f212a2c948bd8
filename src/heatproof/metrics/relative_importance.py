"""Relative importance: compares maps where it is known which of two things matters more.

An object matters to an object model and not to a scene model (MCS). An object that covers the scene matters less to a
scene model than the scene it covers (IDR). Only pictures classified correctly on both sides of a comparison are
judged: for a mistake it is unknown what should matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import ClassVar
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from heatproof import models
from heatproof.data._support import made_up
from heatproof.data._support.other_region import OTHER_REGION
from heatproof.data.bam.layout import NATIVE
from heatproof.errors import NotApplicable
from heatproof.metrics._support.reattribution import ask, keep, staged, true_classes
from heatproof.metrics._support.region_heat import FLAT, Law, Measured, Rule, flat, measured, region_heat, region_of
from heatproof.metrics._support.shared_answers import classes
from heatproof.models._support.outputs import MADE_UP, recognised
from heatproof.registry import metric
from heatproof.spec import recipe, source_hash
from heatproof.types import Attribution, Batch, ConceptMethod, Images, Keep, Maps, Model, Scored, Scores

# Cached: variants of a score use the same contrast model.
_contrasts: WeakValueDictionary[tuple[str, str], Model] = WeakValueDictionary()


@lru_cache(maxsize=4)
def _read(model: Model, shape: tuple[int, ...]) -> Model:
    """The contrast model, with its output type recognised: a network that ends in a softmax has no logits."""
    return recognised(model, made_up.pictures(shape, MADE_UP))


def concept_importance(attribution: Attribution) -> Scores | None:
    """The importance from a concept method; None for heatmap methods. NaN where the concept is not shown."""
    method = attribution.method
    return method.importance(attribution.model, attribution.batch) if isinstance(method, ConceptMethod) else None


def concept_layers(attribution: Attribution, role: str) -> dict[str, Tensor]:
    """The layers in which the concept differs from chance, as details: only these count."""
    method = attribution.method
    layers: tuple[str, ...] = method.kept_layers(attribution.model) if isinstance(method, ConceptMethod) else ()
    return {f"{role} layer {layer}": torch.ones(len(attribution.batch)) for layer in layers}


def wrong(model: Model, batch: Batch, task: str = "", what: str = "") -> list[str]:
    """Per picture: empty if it is classified correctly, else a reason to leave it out."""
    right = classes(model, batch) == true_classes(model, batch, task).to(batch.images.device)
    return ["" if ok else f"misclassified by {model.name}{what}" for ok in right.tolist()]


def scored(
    values: Tensor,
    reasons: list[list[str]],
    remarks: list[str] | None = None,
    details: Mapping[str, Tensor] | None = None,
) -> Scored:
    """The values; an image with reasons against it is undefined, with all reasons in its note."""
    reasons_by_image = ["; ".join(word for word in words if word) for words in zip(*reasons, strict=True)]
    void = torch.tensor([bool(words) for words in reasons_by_image], dtype=torch.bool, device=values.device)
    notes = [
        words or remark for words, remark in zip(reasons_by_image, remarks or [""] * len(reasons_by_image), strict=True)
    ]
    values = values.double().masked_fill(void, torch.nan)
    lost = (values.isnan() & ~void).tolist()
    notes = ["the heat in the region is undefined" if no else n for n, no in zip(notes, lost, strict=True)]
    return Scored(values, tuple(notes), details=details or {})


def framed_region(batch: Batch, law: Law) -> Keep:
    """The region in the frame in which heat is measured: the model's input, or the pictures' own if the data set has
    it.
    """
    own = batch.labels.get(NATIVE)
    if own is not None:
        small = interpolate(batch.images, size=own.shape[1:], mode="area").clamp(0, 1)
        lent = batch.labels.get(OTHER_REGION)
        labels = (
            {} if lent is None else {OTHER_REGION: interpolate(lent[:, None].float(), size=own.shape[1:])[:, 0] > 0}
        )
        batch = replace(batch, images=small, regions=own, twins=None, labels=labels)
    return region_of(batch, law)


def framed_heat(maps: Maps, regions: Keep, rule: Rule) -> Scores:
    """The heat in regions of either frame; maps are averaged down to the pictures' own."""
    if maps.shape[1:] != regions.shape[1:]:
        maps = interpolate(maps[:, None], size=regions.shape[1:], mode="area")[:, 0]
    return region_heat(maps, regions, rule)


def flat_remarks(rule: Rule, *compared: Maps) -> list[str]:
    """A note for each picture whose maps are all flat: its score is meaningless."""
    every = torch.stack([flat(maps, rule) for maps in compared]).all(0)
    return [FLAT if yes else "" for yes in every.tolist()]


def hidden(batch: Batch) -> list[str]:
    """A reason for pictures whose region is empty: there is no object to matter."""
    assert batch.regions is not None
    return ["" if any_ else "the region is empty" for any_ in batch.regions.flatten(1).any(1).tolist()]


def twins_of(batch: Batch) -> Images:
    if batch.twins is None:
        raise NotApplicable("this compares a picture with its twin without the object, and the data set has no twins")
    return batch.twins


@metric
@dataclass(frozen=True)
class MCS:
    """Model contrast: how much hotter the object is for this model than for a contrast model; 0 is blind, 1 perfect.

    With models of a k-series and the last of them as contrast this is the relative (fine-grained) score. A concept
    (TCAV) is judged by the importance of its concept instead of the heat of a region. `contrast` is a model name, or in
    Python the model itself.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance"
    """

    contrast: str | Model = "embedded:scene"
    region: Law = "object"
    rule: Rule = "paper"
    task: str = ""  # which labels are the model's classes, if the model does not declare it
    contrast_task: str = ""  # the same for the contrast model

    higher_is_better: ClassVar[bool] = True
    question: ClassVar[str] = "Follows known importance?"

    @property
    def measures(self) -> Measured:
        return measured(self.region)

    @cached_property
    def _against(self) -> Model:
        if isinstance(self.contrast, Model):
            return self.contrast
        loaded = models.load(self.contrast)
        return _contrasts.setdefault((loaded.name, loaded.revision), loaded)

    def recipe(self) -> dict[str, object]:
        """The fields and a hash of the contrast model: another one under the same name changes the metric."""
        name = self.contrast.name if isinstance(self.contrast, Model) else self.contrast
        settings = {
            field.name: recipe.plain(getattr(self, field.name)) for field in fields(self) if field.name != "contrast"
        }
        source = {"source": source_hash.digest(type(self))} if source_hash.is_component(type(self)) else {}
        held = {"fields": {"contrast": name, **settings}, **source, "revision": self._against.revision}
        return {**recipe.identity(self), **held}

    def __call__(self, attribution: Attribution, /) -> Scored:
        model, batch = attribution.model, attribution.batch
        regions = framed_region(batch, self.region)
        other = _read(self._against, tuple(batch.images.shape[1:])).to(model.device)
        # Each model explains its own predicted class.
        theirs = ask(other, batch.aimed(classes(other, batch)), attribution.explainer)
        reasons = [wrong(model, batch, self.task), wrong(other, batch, self.contrast_task), hidden(batch)]
        mine = concept_importance(attribution)
        if mine is not None:
            against = concept_importance(theirs)
            assert against is not None
            if self.region != "object":
                raise NotApplicable("a concept has no region to be moved: its random counterparts are its baseline")
            absent = ["does not show the concept" if no else "" for no in mine.isnan().tolist()]
            layers = {**concept_layers(attribution, "model"), **concept_layers(theirs, "contrast")}
            return scored(mine - against, [*reasons, absent], details=layers)
        heat = framed_heat(attribution.maps, regions, self.rule) - framed_heat(theirs.maps, regions, self.rule)
        return scored(heat, reasons, flat_remarks(self.rule, attribution.maps, theirs.maps))


@metric("mcs_relative")
@dataclass(frozen=True)
class RelativeMCS(MCS):
    """Model contrast within a k-series: against the model for which the object is in every scene and tells nothing.

    For the models `scene_k1` … `scene_k9`; over k it should follow how much accuracy drops without the object.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance"
    """

    contrast: str | Model = "embedded:scene_k10"


def _pair(attribution: Attribution, task: str) -> tuple[Maps, list[list[str]]]:
    """The map of the picture without the object, and reasons to leave pictures out."""
    if isinstance(attribution.method, ConceptMethod):
        raise NotApplicable("a concept method gives no heat to compare between two pictures: it is judged by MCS")
    keep(attribution)  # it is often the map that an object model is contrasted with
    model, batch = attribution.model, attribution.batch
    bare = batch.showing(twins_of(batch))
    without = ask(model, bare.aimed(classes(model, bare)), attribution.explainer)
    return without.maps, [wrong(model, batch, task), wrong(model, bare, task, " without the object"), hidden(batch)]


@metric("idr")
@dataclass(frozen=True)
class IDR:
    """Input dependence: the share of pictures in which the object is colder than the scene it covers; ties count ½.

    For a scene model. Chance is not ½: compare with the same score of a random region (`region="moved"`).

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance"
    """

    region: Law = "object"
    rule: Rule = "paper"
    task: str = ""  # which labels are the model's classes, if the model does not declare it

    higher_is_better: ClassVar[bool] = True
    question: ClassVar[str] = "Follows known importance?"
    share: ClassVar[bool] = True  # of pictures

    @property
    def measures(self) -> Measured:
        return measured(self.region)

    def stage(self) -> tuple[Model, Batch]:
        """A scene model with pictures, for the conformance kit."""
        return staged("embedded:scene")

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions = framed_region(attribution.batch, self.region)
        without, reasons = _pair(attribution, self.task)
        here = framed_heat(attribution.maps, regions, self.rule)
        there = framed_heat(without, regions, self.rule)
        values = 0.5 * ((here < there).double() + (here <= there).double())
        values = values.masked_fill(here.isnan() | there.isnan(), torch.nan)
        tie = here == there
        return scored(values, reasons, ["tie" if yes else "" for yes in tie.tolist()], {"tie": tie.double()})
