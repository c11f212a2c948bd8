"""The conformance kit: what must be true of every component, built-in or from a plug-in.

    for verdict in heatproof.testing.check("saliency"): print(verdict)

Each `check_…` yields verdicts: a claim, whether it holds, and if not why. The tests run the kit on everything
registered; `heatproof check NAME` runs it on one name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heatproof import registry, traits
from heatproof.attribute import attribute
from heatproof.errors import BadInput, BadShape, NotApplicable, UnknownName
from heatproof.models._support.snapshot import Snapshot, changed, snapshot
from heatproof.occlusion.occlusion import Answerer
from heatproof.protocols._support.given import missing
from heatproof.questions import IN_WORDS, Kind, Question
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.types import Attribution, Batch, Dataset, Imputer, Method, Metric, Model, Scored, Segmenter

CLOSE = 1e-5
FEW_PASSES = 300  # components that cost more are not tried on further kinds of output


@dataclass(frozen=True)
class Verdict:
    """A claim about a component, and whether it holds."""

    claim: str
    holds: bool
    why: str = ""

    def __str__(self) -> str:
        return f"{'ok' if self.holds else 'FAIL'}: {self.claim}{'' if self.holds else ' — ' + self.why}"


def check(name: str) -> list[Verdict]:
    """Put the component of this name, of whatever kind, through the kit on the embedded model and data."""
    checkable = [kind for kind in registry.KINDS if kind != "part"]  # checked within their components
    kinds = [kind for kind in checkable if name in registry.names(kind) or name in registry.aliases(kind)]
    if not kinds:
        raise UnknownName.among("component", name, [n for kind in checkable for n in registry.names(kind)])
    return [verdict for kind in kinds for verdict in check_component(kind, registry.find(kind, name))]


def check_component(kind: registry.Kind, component: Any) -> Iterator[Verdict]:
    """The checks for its kind, on the component's own stage or the embedded one; an error counts as a failed check.

    Networks run on the reference engine, which gives the same bits for any batch: methods that amplify float noise must
    not depend on it either.
    """
    from heatproof import engine

    verdicts: list[Verdict] = []
    with engine.use(engine.Engine(always=engine.REFERENCE if kind in ("method", "metric") else None)):
        try:
            verdicts.extend(_checks(kind, component))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            verdicts.append(Verdict("goes through all checks without an error", False, problem))
    yield from verdicts


def _checks(kind: registry.Kind, component: Any) -> Iterator[Verdict]:
    if kind == "dataset" and traits.path_of(component) == "":
        yield Verdict("needs a path; its recipe is the same when read back", *_round_trip(component))
        return
    yield from check_declarations(kind, component)
    if kind == "dataset":
        yield from check_dataset(component)
    elif kind == "model":
        try:
            yield from check_model(component, stage()[1].images)
        except NotApplicable as reason:
            yield Verdict(f"does not apply here and says why: {reason}", True)
    elif kind == "protocol":
        yield from check_protocol(component)
    else:
        model, batch = traits.stage_of(component) or stage()
        if kind == "method":
            yield from check_method(component, model, batch)
        elif kind == "metric":
            yield from check_metric(component, model, batch)
        elif kind == "imputer":
            yield from check_imputer(component, batch.images)
        elif kind == "segmenter":
            yield from check_segmenter(component, batch.images)


def check_declarations(kind: registry.Kind, component: Any) -> Iterator[Verdict]:
    """What it and the components in its fields declare about themselves has the right types."""
    wrong = []
    for one in traits.parts_of(component):
        own = registry.name_of(one)
        try:
            traits.READERS.get(kind if one is component else own[0] if own else "", str)(one)
        except BadInput as error:
            wrong.append(str(error))
    yield Verdict("declares its traits in the right types", not wrong, "; ".join(wrong))


def stage(count: int = 4, model: str = "embedded:object") -> tuple[Model, Batch]:
    """A trained model and a few pictures whose answer is known."""
    from heatproof import engine, models
    from heatproof.data.two_factor.dataset import TwoFactor

    loaded = models.load(model)
    batch = TwoFactor(count=64).batch(range(64))
    right = (engine.forward(loaded, batch.images).argmax(1) == batch.labels[loaded.task]).nonzero().flatten()
    few = batch.select(right[:count])
    return loaded, few.aimed(few.labels[loaded.task])


def check_method(method: Method, model: Model, batch: Batch) -> Iterator[Verdict]:
    before = snapshot(model), batch.images.clone()
    try:
        maps = attribute(model, batch, method).maps
    except NotApplicable as reason:
        yield Verdict("says why it does not apply", len(str(reason)) > 10, "the reason is empty")
        yield from _unmoved(model, before[0], "after refusing")
        return
    except Exception as error:
        yield Verdict("gives finite maps of the right shape", False, f"{type(error).__name__}: {error}")
        return
    yield Verdict("gives finite maps of the right shape", True)
    yield Verdict("leaves the images as they were", torch.equal(batch.images, before[1]), "they were changed in place")
    yield from _unmoved(model, before[0], "")
    if not traits.method_traits(method).signed:
        yield Verdict("is never negative, as declared", float(maps.min()) >= 0, f"its smallest value is {maps.min():g}")
    again = attribute(model, batch, method).maps
    yield _same("gives the same answer again", maps, again)
    single = torch.cat([attribute(model, batch.select([i]), method).maps for i in range(len(batch))])
    yield _same("does not depend on batch mates", maps, single)
    order = list(range(len(batch)))[::-1]
    yield _same("does not depend on the order", maps[order], attribute(model, batch.select(order), method).maps)
    yield Verdict("its recipe is the same when read back", *_round_trip(method))
    cost = traits.cost_of(method)
    if cost is not None and sum(cost) <= FEW_PASSES:
        yield from _other_questions(model, batch, method, lambda one, few: attribute(one, few, method))


def _other_questions(
    model: Model, batch: Batch, component: object, ask: Callable[[Model, Batch], object]
) -> Iterator[Verdict]:
    """It answers, or declares why not, where the same network is read as yes or no, and as a value."""
    kinds: tuple[tuple[Question, Kind], ...] = (("yes_no", "sigmoid"), ("value", "regression"))
    for question, kind in kinds:
        if traits.misfit(component, question):
            continue  # refused before any work starts
        whole = dataclasses.replace(model, output=kind, probabilities=False)
        whole(batch.images[:1].to(whole.device))
        one = whole.of(int(batch.targets[0]))
        few = batch.select([0]).aimed(batch.targets.new_full((1,), 1 if question == "yes_no" else 0))
        claim = f"applies to {IN_WORDS[question]}, or declares in `unfit` why not"
        try:
            ask(one, few)
        except NotApplicable as reason:
            yield Verdict(claim, len(str(reason)) > 10, "the reason is empty")
        except Exception as error:
            yield Verdict(claim, False, f"{type(error).__name__}: {error}")
        else:
            yield Verdict(claim, True)


def check_metric(metric: Metric, model: Model, batch: Batch) -> Iterator[Verdict]:
    from heatproof.methods.controls import Oracle, Random

    direction = getattr(metric, "higher_is_better", None)
    yield Verdict("says whether higher is better", isinstance(direction, bool), f"higher_is_better is {direction!r}")
    state = snapshot(model)
    try:
        oracle = attribute(model, batch, Oracle())
        noise = attribute(model, batch, Random())
        answer = metric(noise)
        best, worst = _values(metric(oracle)), _values(answer)
    except NotApplicable as reason:
        yield Verdict("says why it does not apply", len(str(reason)) > 10, "the reason is empty")
        return
    count = len(batch)
    yield Verdict("gives one score per picture", best.shape == (count,), f"shape {tuple(best.shape)}")
    known = torch.cat([best, worst]).isfinite().any()
    yield Verdict("has a score for some picture", bool(known), "all are NaN or infinite, for the oracle and for noise")
    yield from _unmoved(model, state, "")
    yield Verdict("scores maps without changing them", torch.equal(oracle.maps, attribute(model, batch, Oracle()).maps))
    if traits.metric_traits(metric).measures in ("faithfulness", "localisation"):
        sign = 1 if metric.higher_is_better else -1
        gap = float((sign * (best - worst)).nanmean())
        yield Verdict("puts the oracle before noise", gap > 0, f"the oracle is behind by {-gap:g}")
    for what, maps in (("zero", torch.zeros_like(noise.maps)), ("constant", torch.ones_like(noise.maps))):
        flat = metric(dataclasses.replace(noise, maps=maps))
        notes = flat.notes if isinstance(flat, Scored) else ()
        silent = [not (notes and notes[i]) for i, value in enumerate(_values(flat)) if not value.isfinite()]
        yield Verdict(f"scores a {what} map or says why not", not any(silent), "a score is NaN, and no note says why")
    single = [_values(metric(_alone(noise, i))) for i in range(count)]
    if isinstance(answer, Scored):
        axes = traits.metric_traits(metric).axes
        named = answer.curve is None or (len(axes) == 2 and all(axes))
        yield Verdict("names the axes of its curve", named, f"axes is {axes!r}: give it a name for x and one for y")
        shapes = {name: tuple(numbers.shape) for name, numbers in answer.details.items()}
        fit = all(shape == (count,) for shape in shapes.values())
        yield Verdict("gives each detail once per picture", fit, f"shapes {shapes}")
    yield _same("does not depend on batch mates", worst, torch.cat(single))
    yield _same("gives the same answer again", worst, _values(metric(noise)))
    yield Verdict("its recipe is the same when read back", *_round_trip(metric))
    price = traits.cost_of(metric)
    if price is None or sum(price) <= FEW_PASSES:
        yield from _other_questions(
            model, batch, metric, lambda one, few: metric(dataclasses.replace(_alone(noise, 0), model=one, batch=few))
        )


def check_imputer(imputer: Imputer, images: Tensor) -> Iterator[Verdict]:
    if isinstance(imputer, Answerer):  # takes tokens out of the network instead of pixels out of the picture
        yield Verdict("its recipe is the same when read back", *_round_trip(imputer))
        return
    count, _, height, width = images.shape
    seeds = list(range(count))
    keep = torch.rand(count, 1, height // 8, width // 8, generator=torch.Generator().manual_seed(0)) < 0.5
    keep = keep.repeat_interleave(8, 2).repeat_interleave(8, 3)[:, 0]
    try:
        filled = imputer(images, keep, seeds=seeds)
    except NotApplicable as reason:
        yield Verdict("says why it does not apply", len(str(reason)) > 10, "the reason is empty")
        return
    shown = keep[:, None].expand_as(images)
    yield Verdict("gives pictures of the same shape", filled.shape == images.shape, f"shape {tuple(filled.shape)}")
    yield Verdict("keeps visible pixels bit for bit", torch.equal(filled[shown], images[shown]))
    yield Verdict("stays within [0, 1]", float(filled.min()) >= 0 and float(filled.max()) <= 1, "it leaves the range")
    yield Verdict("replaces hidden pixels", not torch.equal(filled[~shown], images[~shown]), "nothing was hidden")
    everything = torch.ones_like(keep)
    yield Verdict(
        "gives the picture itself if all is kept", torch.equal(imputer(images, everything, seeds=seeds), images)
    )
    nothing = imputer(images, ~everything, seeds=seeds)
    yield Verdict("gives a finite picture if nothing is kept", bool(nothing.isfinite().all()))
    yield _same("gives the same for the same seeds", filled, imputer(images, keep, seeds=seeds))
    alone = [imputer(images[[i]], keep[[i]], seeds=[seeds[i]]) for i in range(count)]
    yield _same("does not depend on batch mates", filled, torch.cat(alone))
    yield Verdict("its recipe is the same when read back", *_round_trip(imputer))


def check_segmenter(segmenter: Segmenter, images: Tensor) -> Iterator[Verdict]:
    try:
        segments = segmenter(images)
    except NotApplicable as reason:
        yield Verdict("says why it does not apply", len(str(reason)) > 10, "the reason is empty")
        return
    wanted = (len(images), *images.shape[2:])
    yield Verdict("labels every pixel", segments.shape == wanted, f"shape {tuple(segments.shape)}, wanted {wanted}")
    yield Verdict("labels are int64", segments.dtype == torch.int64, f"they are {segments.dtype}")
    whole = all(torch.equal(s.unique(), torch.arange(int(s.max()) + 1)) for s in segments.cpu())
    yield Verdict("labels run from 0 without gaps", whole, "a label is missing or negative")
    yield Verdict("there is more than one segment", int(segments.max()) > 0, "one segment covers everything")
    alone = torch.cat([segmenter(images[[i]]) for i in range(len(images))])
    yield Verdict("does not depend on batch mates", torch.equal(alone, segments))
    yield Verdict("its recipe is the same when read back", *_round_trip(segmenter))


def check_dataset(dataset: Dataset) -> Iterator[Verdict]:
    ids = dataset.ids()
    yield Verdict(
        "has pictures", len(dataset) > 0 and len(ids) == len(dataset), f"{len(ids)} ids, length {len(dataset)}"
    )
    yield Verdict("names every picture differently", len(set(ids)) == len(ids), "an id occurs twice")
    few = list(range(min(3, len(ids))))
    batch, backwards = dataset.batch(few), dataset.batch(few[::-1])
    yield Verdict("gives the same picture in any order", torch.equal(batch.images, backwards.images.flip(0)))
    yield Verdict("gives the same picture alone", torch.equal(dataset.batch([few[-1]]).images[0], batch.images[-1]))
    yield Verdict("its digest is stable", dataset.digest(few) == dataset.digest(few))
    if len(few) > 1:
        yield Verdict("its digest tells pictures apart", dataset.digest(few[:1]) != dataset.digest(few[1:2]))
    yield Verdict("its recipe is the same when read back", *_round_trip(dataset))


def check_protocol(protocol: Any) -> Iterator[Verdict]:
    """It makes studies of the methods that are named and of its own, or says what it needs."""
    yield Verdict("its recipe is the same when read back", *_round_trip(protocol))
    lacks = missing(traits.protocol_traits(protocol), ["embedded:object"], ["two_factor"])
    if lacks:
        yield Verdict("says what it needs", len(lacks) > 10, "the reason is empty")
        return
    studies = protocol.studies(models=["embedded:object"], datasets=["two_factor(count=64)"], methods=["saliency"])
    yield Verdict("makes studies", bool(studies) and all(isinstance(one, Study) for one in studies), f"got {studies!r}")
    named = [any("saliency" in recipe.label(method) for method in study.methods) for study in studies]
    yield Verdict("judges the methods that are named", all(named), "a study has none of them")
    stored = [study.plain() for study in studies]
    again = [Study.from_plain(one, trust_code=True).plain() for one in stored]
    yield Verdict("its studies are the same when read back", stored == again)


def check_model(model: Model, images: Tensor) -> Iterator[Verdict]:
    from heatproof import engine

    size = model.view.sides if model.view else images.shape[-2:]
    images = torch.nn.functional.interpolate(images, size=size, mode="bilinear").clamp(0, 1)
    logits = engine.forward(model, images)
    yield Verdict("answers with one row of logits per picture", logits.ndim == 2 and len(logits) == len(images))
    eager = torch.cat([model(images[[i]]).detach() for i in range(len(images))])
    yield _same("answers the same through the engine and alone", logits, eager, 1e-4)
    yield Verdict("is in evaluation mode", not model.network.training, "dropout or batch norm would move the answers")


def _alone(attribution: Attribution, row: int) -> Attribution:
    return dataclasses.replace(attribution, batch=attribution.batch.select([row]), maps=attribution.maps[[row]])


def _values(answer: Tensor | Scored) -> Tensor:
    values = answer.values if isinstance(answer, Scored) else answer
    if not isinstance(values, Tensor) or values.ndim != 1:
        raise BadShape(f"a metric must return one score per picture, a tensor of shape (pictures,), got {values!r:.60}")
    return values


def _same(claim: str, first: Tensor, other: Tensor, tolerance: float = CLOSE) -> Verdict:
    if first.shape != other.shape:
        return Verdict(claim, False, f"shapes differ: {tuple(first.shape)} and {tuple(other.shape)}")
    if not torch.equal(first.isnan(), other.isnan()):
        return Verdict(claim, False, "a score is NaN one time and not the other")
    scale = max(1e-12, float(first.nan_to_num().abs().max())) if first.numel() else 1.0
    gap = float((first.nan_to_num() - other.nan_to_num()).abs().max()) / scale if first.numel() else 0.0
    return Verdict(claim, gap <= tolerance, f"the largest difference is {gap:.2g} of the largest value")


def _round_trip(component: Any) -> tuple[bool, str]:
    stored = recipe.plain(component)
    again = recipe.plain(recipe.build(stored, trust_code=True))
    return stored == again, f"{stored} became {again}"


def _unmoved(model: Model, before: Snapshot, when: str) -> Iterator[Verdict]:
    moved = changed(model, before)
    yield Verdict(f"leaves the model exactly as it was {when}".strip(), not moved, f"changed: {', '.join(moved)}")
