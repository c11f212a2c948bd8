"""Relative importance: models and pictures in which it is known what matters more."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from heatproof import data, engine, models
from heatproof.data.bam import twins
from heatproof.data.bam.layout import BAM, TWIN_GAP
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.data.two_factor.k_dataset import TwoFactorK
from heatproof.errors import BadInput
from heatproof.methods.cam import GradCam, GuidedGradCam
from heatproof.methods.controls import Centre, Constant, Edges, Random
from heatproof.methods.guided_backprop import GuidedBackprop
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import IGSmoothGrad, IntegratedGradients
from heatproof.methods.random_weights import RandomWeights
from heatproof.methods.saliency import Saliency
from heatproof.methods.smoothgrad import Smoothed
from heatproof.methods.tcav import TCAV
from heatproof.metrics._support.region_heat import Law
from heatproof.metrics.input_independence import IIR, IIRChange
from heatproof.metrics.relative_importance import IDR, MCS, RelativeMCS
from heatproof.protocols._support.blind_controls import with_controls
from heatproof.protocols._support.given import Datasets, Methods, Models
from heatproof.registry import protocol
from heatproof.results.protocol_notes import RelativeImportanceNotes, SeriesPoint, Variant
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import Need, Pairs, dataset_traits
from heatproof.types import AnyMethod, Batch, Dataset, Metric, Model

Preset = Literal["default", "paper"]

ROLES = ("object", "scene", "scene_only")
MODELS = ("embedded:object", "embedded:scene", "embedded:scene_only")
SERIES = tuple(f"embedded:scene_k{k}" for k in range(1, 11))
SMALL = (0.35, 0.45)  # objects for null patches: small enough that the scene model still knows the scene
OTHER_SCALE = (0.40, 0.50)  # objects of another size, in other places
LAWS: tuple[Law, ...] = ("object", "moved", "permuted", "pixels")  # the first two are measured everywhere


def heatmaps(preset: Preset) -> list[AnyMethod]:
    """The paper's eight heatmap methods: evidence against the class dropped channel by channel, squared SmoothGrad."""
    steps, draws = (25, 25) if preset == "paper" else (8, 6)
    return [
        GradCam(),
        Saliency(signed=True, pooling="positive_sum"),
        Smoothed(Saliency(signed=True, pooling="positive_sum"), draws=25, mode="squared"),
        IntegratedGradients(steps=25, pooling="positive_sum"),
        IGSmoothGrad(steps=steps, draws=draws, mode="squared", pooling="positive_sum"),
        InputXGradient(pooling="positive_sum"),
        GuidedBackprop(pooling="positive_sum"),
        GuidedGradCam(pooling="positive_sum"),
    ]


def blind() -> list[AnyMethod]:
    """The blind controls and the map of a model that learnt nothing: a constant map has a perfect IIR."""
    return [Constant(), Random(), Edges(), Centre(), RandomWeights()]


@protocol
@dataclass(frozen=True)
class RelativeImportance:
    """Model contrast, input dependence and input independence, each beside random regions and blind controls.

    Runs on the embedded models and pictures. With user data (pictures with twins, regions and two labels, such
    as `bam` or `cutouts`) name the object model, the scene model and, for null patches, the model trained on scenes
    alone, in this order. For the k-series, on `bam` or the embedded pictures, name its ten models after these, k = 1 …
    10. `preset="paper"` has the published number of noisy copies. Blind controls are always judged beside the methods,
    whichever are named.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance"
    """

    preset: Preset = "default"
    pictures: int | None = None  # for model contrast and input dependence; the preset's
    series: bool = True  # the k-series
    robustness: bool = True  # model contrast and input dependence again, with objects of another size and place

    order: ClassVar[int] = 4
    needs: ClassVar[tuple[Need, ...]] = ("regions", "twins", "labels")
    models: ClassVar[int] = 2
    paper: ClassVar[Pairs] = (("preset", "paper"),)
    brief: ClassVar[Pairs] = (("series", False), ("robustness", False), ("pictures", 32))

    @property
    def _count(self) -> int:
        return self.pictures or (1000 if self.preset == "paper" else 64)

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        """One study per question, each with the accuracies its premises rest on."""
        if models is None and datasets is not None:
            raise BadInput(
                "pictures of your own need models of your own: an object model, a scene model[, one of scenes alone]"
            )
        with_role, of_series = (MODELS, SERIES) if models is None else by_role(models)
        chosen = [_model(one) for one in with_role]
        count = self._count
        pictures = [_dataset(one) for one in datasets] if datasets else [TwoFactor(count=count)]
        roles = dict(zip(ROLES, chosen, strict=False))
        plain = with_controls(methods or heatmaps(self.preset), blind(), regions=True)
        embedded = datasets is None
        with_concept = plain
        if embedded and not methods:
            with_concept = with_controls([*heatmaps(self.preset), TCAV()], blind(), regions=True)
        # User models do not say which of the two labels is theirs: their role does.
        tasks = {
            role: "" if embedded and model.task in ROLES else role.removesuffix("_only")
            for role, model in roles.items()
        }
        notes = self._notes(roles, tasks, pictures[0], count)
        contrast = with_role[1] if isinstance(with_role[1], Model) else chosen[1].name
        # The scene model first: what the object model is contrasted with are then its maps, and not computed again.
        studies = [
            self._study(chosen[1], pictures, plain, dependences(tasks["scene"]), "idr", count, notes),
            self._study(
                chosen[0],
                pictures,
                with_concept,
                contrasts(contrast, tasks["object"], tasks["scene"]),
                "mcs",
                count,
                notes,
            ),
        ]
        half = max(1, count // 2)
        if len(chosen) == 3:
            # On pictures without objects the map before the patch is there already, and none is made for nothing.
            bare = [one.bare() if isinstance(one, BAM) else one for one in pictures]
            small = [TwoFactor(count=count, scale=SMALL)] if embedded else bare
            studies.append(self._study(chosen[2], small, plain, independences(tasks["scene_only"]), "iir", half, notes))
        if embedded and self.robustness:
            other = [TwoFactor(count=count, scale=OTHER_SCALE)]
            against = MCS(contrast, task=tasks["object"], contrast_task=tasks["scene"])
            again: list[tuple[Model, list[Metric]]] = [
                (chosen[1], [IDR(law, task=tasks["scene"]) for law in LAWS[:2]]),
                (chosen[0], [dataclasses.replace(against, region=law) for law in LAWS[:2]]),
            ]
            studies += [
                self._study(model, other, plain, measures, "robustness", half, notes) for model, measures in again
            ]
        if self.series and of_series:
            asked_about = min(100 if self.preset == "paper" else 24, count)
            studies.append(self._series(of_series, None if embedded else pictures[0], with_concept, asked_about))
        return studies

    def _study(
        self,
        model: Model,
        datasets: Sequence[Dataset],
        methods: Sequence[AnyMethod | str],
        metrics: Sequence[Metric],
        part: str,
        limit: int,
        notes: RelativeImportanceNotes,
    ) -> Study:
        described = dataclasses.replace(
            notes,
            main=() if part == "robustness" else (recipe.label(metrics[0]),),
            part=part,
            clusters=clusters(datasets[0], limit, model),
            datasets=tuple(recipe.label(one) for one in datasets),
            metrics=_variants(metrics),
        ).plain()
        return Study([model], datasets, methods, list(metrics), "relative_importance", limit=limit, notes=described)

    def _series(
        self, given: Sequence[Model | str], own: Dataset | None, methods: Sequence[AnyMethod | str], count: int
    ) -> Study:
        """The models of the k-series against the last of them; that one itself is 0 by construction."""
        anchor, every = anchors(own, count)
        series = [_model(one) for one in given]
        task = "" if all(model.task == "scene" for model in series) else "scene"
        drops: dict[str, SeriesPoint] = {}
        number = 0
        for k, model in enumerate(series, start=1):
            seen = data.seen_by(model, every)
            batch = seen.batch(range(len(seen))).to(model.device)
            number = len(batch)
            shown, bare = (accuracy(model, batch, what, task) for what in ("composite", "without"))
            drops[model.name] = SeriesPoint(k, shown, bare)
        contrast = given[-1] if isinstance(given[-1], Model) else series[-1].name
        main = RelativeMCS(contrast, task=task, contrast_task=task)
        metrics: list[Metric] = [main, dataclasses.replace(main, region="moved")]
        notes = RelativeImportanceNotes(
            main=(),
            preset=self.preset,
            part="series",
            pictures=number,
            clusters=clusters(anchor, count, series[-1]),
            metrics=_variants(metrics),
            series=drops,
        ).plain()
        return Study(series[:-1], [anchor], methods, metrics, "relative_importance", limit=count, notes=notes)

    def _notes(
        self, roles: dict[str, Model], tasks: dict[str, str], pictures: Dataset, count: int
    ) -> RelativeImportanceNotes:
        """What the design presumes, measured: each model with objects, without them, and on objects alone."""
        # Drawn pictures cost little, and two hundred of the same kind say more of an accuracy than a few.
        more = max(count, 200)
        shown = dataclasses.replace(pictures, count=more) if isinstance(pictures, TwoFactor) else pictures
        measured: dict[str, dict[str, float | None]] = {}
        rising: dict[str, float | None] = {}
        number, gaps = 0, list[int]()
        for role, model in roles.items():
            seen = data.seen_by(model, shown)
            batch = seen.batch(range(min(len(seen), more))).to(model.device)
            number, gaps = len(batch), batch.labels.get(TWIN_GAP, torch.zeros(0)).tolist()
            measured[role] = {
                what: accuracy(model, batch, what, tasks[role]) for what in ("composite", "without", "grey")
            }
            rising[role] = rises(model, batch, tasks[role])
        apart = twins.warning(gaps, exact=dataset_traits(pictures).exact_twins)
        if apart:
            warnings.warn(apart, stacklevel=3)
        return RelativeImportanceNotes(
            preset=self.preset,
            accuracy=measured,
            rises=rising,
            roles={role: model.name for role, model in roles.items()},
            classes=len(roles["object"].classes) or 10,
            pictures=number,
            twins=apart,
        )


def by_role(given: Sequence[Model | str]) -> tuple[Sequence[Model | str], Sequence[Model | str]]:
    """The two or three models with a role, and the ten of the k-series if they were named after these."""
    first = len(given) - len(SERIES) if len(given) > len(SERIES) else len(given)
    if first not in (2, 3):
        raise BadInput(
            "name the object model, the scene model[, one trained on scenes alone][, then the ten models of the "
            f"k-series], got {len(given)}"
        )
    return given[:first], given[first:]


def anchors(own: Dataset | None, count: int) -> tuple[Dataset, Dataset]:
    """Pictures of the one scene that carries the object for every k: to be explained, and to measure accuracy on."""
    if own is None:
        return TwoFactorK(10, count=count, scenes="anchor"), TwoFactorK(10, count=max(200, count), scenes="anchor")
    if not isinstance(own, BAM):
        raise BadInput(
            f"the k-series takes pictures of bam(path=…) or the embedded ones, got {recipe.label(own)!r}: "
            "leave its models out"
        )
    return own.anchor(), own.anchor()


def contrasts(contrast: str | Model, task: str = "", contrast_task: str = "") -> list[Metric]:
    """MCS, its random regions in all three laws, and a scale-free variant."""
    main = MCS(contrast, task=task, contrast_task=contrast_task)
    return [*(dataclasses.replace(main, region=law) for law in LAWS), dataclasses.replace(main, rule="rank")]


def dependences(task: str = "") -> list[Metric]:
    """IDR, its random regions in all three laws, and a scale-free variant."""
    return [*(IDR(law, task=task) for law in LAWS), IDR(rule="rank", task=task)]


def independences(task: str = "") -> list[Metric]:
    """IIR, its random regions in all three laws, a scale-free variant, and the mean relative change."""
    return [*(IIR(region=law, task=task) for law in LAWS), IIR(rule="rank", task=task), IIRChange(task=task)]


def accuracy(model: Model, batch: Batch, what: str, task: str = "") -> float:
    """The share named rightly with the object, without it, or of the object alone; NaN if that cannot be shown."""
    labels = batch.labels.get(task or model.task)
    if labels is None or not len(batch):
        return float("nan")
    images = batch.images
    if what == "without":
        if batch.twins is None:
            return float("nan")
        images = batch.twins
    elif what == "grey":
        if batch.regions is None:
            return float("nan")
        images = images.where(batch.regions[:, None], 0.5)
    answers = engine.forward(model, images).argmax(1).cpu()
    return float((answers == labels.cpu()).double().mean())


def rises(model: Model, batch: Batch, task: str = "") -> float:
    """The share of rightly named pictures on which the confidence rises once the object is gone; NaN without any.

    Confidence is the probability of the true class.
    """
    labels = batch.labels.get(task or model.task)
    if labels is None or not len(batch) or batch.twins is None:
        return float("nan")
    labels = labels.to(batch.images.device)
    whole, bare = (engine.forward(model, images).to(labels.device) for images in (batch.images, batch.twins))
    right = whole.argmax(1) == labels
    before, after = (model.read(logits, labels, "probability") for logits in (whole, bare))
    return float((after > before)[right].double().mean())


def clusters(dataset: Dataset, limit: int, model: Model | None) -> dict[str, tuple[int, ...]]:
    """Which object and which scene each picture shows: pictures that share one are not independent."""
    seen = dataset if model is None else data.seen_by(model, dataset)
    batch = seen.batch(range(min(limit, len(seen))))
    ids = [batch.labels[name].tolist() for name in ("scene_id", "object_id") if name in batch.labels]
    return {image: tuple(int(one[row]) for one in ids) for row, image in enumerate(batch.ids)} if ids else {}


def _variants(metrics: Sequence[Metric]) -> dict[str, Variant]:
    """The forms of a metric by label."""
    plain = {recipe.label(one): recipe.plain(one) for one in metrics}
    return {label: Variant(one.get("metric", ""), one.get("fields", {})) for label, one in plain.items()}


def _model(given: Model | str) -> Model:
    return models.load(given) if isinstance(given, str) else given


def _dataset(given: Dataset | str) -> Dataset:
    return data.load(given) if isinstance(given, str) else given
