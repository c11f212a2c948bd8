"""Input independence: a patch that does not change the model's output should not change the map either.

A constant map passes perfectly, so these scores mean nothing without the blind controls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from heatproof.data.bam.layout import WITH_OBJECT
from heatproof.errors import BadInput, NotApplicable
from heatproof.metrics._support.insignificant_patch import Patched, PatchSolver
from heatproof.metrics._support.reattribution import ask, keep, staged
from heatproof.metrics._support.region_heat import Law, Measured, Rule, measured, region_of
from heatproof.metrics._support.shared_answers import classes
from heatproof.metrics.relative_importance import (
    flat_remarks,
    framed_heat,
    framed_region,
    hidden,
    scored,
    twins_of,
    wrong,
)
from heatproof.registry import metric
from heatproof.types import Attribution, Batch, ConceptMethod, Images, Model, Scored

Start: TypeAlias = Literal["object", "noise", "given"]


def patched(model: Model, batch: Batch, start: Start, solver: PatchSolver) -> tuple[Images, Patched]:
    """The bare pictures and the patched ones, solved once per batch and model however many methods are judged.

    - `object`: the twins, patched from the object that was on them (or, if the data set declares it, would be)
    - `noise`: the pictures themselves, patched from uniform noise
    - `given`: the twins, and the pictures as existing patches; they are verified, not solved
    """
    if start not in get_args(Start):
        raise BadInput(f"start must be one of {', '.join(get_args(Start))}, got {start!r}")
    kept: dict[object, tuple[Images, Patched]] = vars(batch).setdefault("_patched", {})
    key = (model.revision, start, solver)
    if key not in kept:
        bare = batch.images if start == "noise" else twins_of(batch)
        if start == "given":
            kept[key] = bare, solver.verify(model, bare, batch.images)
        else:
            first = _noise(batch) if start == "noise" else _objects(batch)
            kept[key] = bare, solver(model, bare, first, region_of(batch, "object"))
    return kept[key]


def _objects(batch: Batch) -> Images:
    return batch.labels.get(WITH_OBJECT, batch.images)


def nothing_there(batch: Batch, start: Start) -> list[str]:
    """A reason for pictures that equal their twins: a patch that is the scene itself can change nothing."""
    first = _objects(batch) if start == "object" else batch.images
    same = torch.zeros(len(batch)) if start == "noise" else (first == twins_of(batch)).flatten(1).all(1)
    return ["no object to start from" if yes else "" for yes in same.tolist()]


def _noise(batch: Batch) -> Images:
    shape = batch.images.shape[1:]
    noise = [torch.rand(shape, generator=dice) for dice in batch.generators("patch")]
    return torch.stack(noise).to(batch.images) if noise else batch.images


@dataclass(frozen=True)
class InputIndependence:
    """The base of IIR: a functionally insignificant patch, and how its heat is measured."""

    start: Start = "object"
    region: Law = "object"
    rule: Rule = "paper"
    solver: PatchSolver = field(default_factory=PatchSolver)
    task: str = ""  # which labels are the model's classes, where the model itself does not say

    question: ClassVar[str] = "Follows known importance?"

    @property
    def measures(self) -> Measured:
        return measured(self.region)

    def stage(self) -> tuple[Model, Batch]:
        """For the conformance kit: a model of scenes, and objects small enough to be made insignificant."""
        return staged("embedded:scene_only", (0.35, 0.45))

    def heats(self, attribution: Attribution) -> tuple[Tensor, Tensor, list[list[str]], list[str], dict[str, Tensor]]:
        """The region's heat without and with the patch, reasons to leave pictures out, remarks, and details."""
        model, batch, method = attribution.model, attribution.batch, attribution.explainer
        if isinstance(method, ConceptMethod):
            raise NotApplicable("a concept method gives no heat to compare between two pictures: it is judged by MCS")
        regions = framed_region(batch, self.region)
        keep(attribution)  # for given or noise patches, one of the two maps exists already
        images, result = patched(model, batch, self.start, self.solver)
        bare, covered = batch.showing(images), batch.showing(result.images)
        before = ask(model, bare.aimed(classes(model, bare)), method)
        after = ask(model, covered.aimed(classes(model, covered)), method)
        unverified = ["" if ok else "the patch changes the logits or the class" for ok in result.verified.tolist()]
        reasons = [
            wrong(model, bare, self.task),
            wrong(model, covered, self.task, " with the patch"),
            unverified,
            nothing_there(batch, self.start),
            hidden(batch),
        ]
        heat = framed_heat(before.maps, regions, self.rule), framed_heat(after.maps, regions, self.rule)
        details = {"verified": result.verified.double(), "logit_change": result.change.double()}
        return *heat, reasons, flat_remarks(self.rule, before.maps, after.maps), details


@metric("iir")
@dataclass(frozen=True)
class IIR(InputIndependence):
    """Input independence: the share of pictures whose map changes by no more than `threshold` under a null patch.

    A constant map scores 1: read it beside the blind controls.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance"
    """

    threshold: float = 0.1

    higher_is_better: ClassVar[bool] = True
    share: ClassVar[bool] = True  # of pictures

    def __call__(self, attribution: Attribution, /) -> Scored:
        before, after, reasons, remarks, details = self.heats(attribution)
        # "No more than" instead of the paper's "less than": a map without heat, before and after, has not changed.
        kept = ((after - before).abs() <= self.threshold * before).double()
        return scored(kept.masked_fill(before.isnan() | after.isnan(), torch.nan), reasons, remarks, details)


@metric("iir_change")
@dataclass(frozen=True)
class IIRChange(InputIndependence):
    """The relative change of the heat in the region of a null patch, mean over pictures: lower is better.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance" (appendix C)
    """

    higher_is_better: ClassVar[bool] = False

    def __call__(self, attribution: Attribution, /) -> Scored:
        before, after, reasons, remarks, details = self.heats(attribution)
        still = before == after
        cold = ["no heat in the region to begin with" if no else "" for no in ((before == 0) & ~still).tolist()]
        change = torch.where(still, 0.0, (after - before).abs() / before)
        return scored(change, [*reasons, cold], remarks, details)
