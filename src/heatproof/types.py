"""The nouns: the types that all of heatproof takes and returns. A user-defined component needs only these."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor, nn

from heatproof import network_state, outputs, questions
from heatproof.errors import BadModel, BadShape, NotApplicable
from heatproof.questions import Kind, Question
from heatproof.spec import source_hash
from heatproof.zero_shot import ZeroShot

Images: TypeAlias = Tensor  # (B, C, H, W) float32 in [0, 1]; the model normalises
Maps: TypeAlias = Tensor  # (B, H, W) float32; larger = more evidence for the target; signed unless the method is not
Keep: TypeAlias = Tensor  # (B, H, W) bool; True = the pixel stays visible. One polarity in the whole package
Segments: TypeAlias = Tensor  # (B, H, W) int64; labels 0 … n-1 per image
Scores: TypeAlias = Tensor  # (B,) one number per image
Logits: TypeAlias = Tensor  # (B, columns that can be explained): `heatproof.outputs`
Readout: TypeAlias = questions.Readout
read = outputs.read


class View(NamedTuple):
    """How a picture of any size becomes the model's input: shorter side to `resize`, then the central `size` square.

    `resize=None` squeezes the picture to the square without keeping its aspect ratio.
    """

    size: int
    resize: int | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"


@dataclass(frozen=True, eq=False)
class Batch:
    """Pictures with their targets, ids, regions, twins and labels."""

    images: Images
    targets: Tensor  # (B,) int64: the class to be explained
    ids: tuple[str, ...]
    regions: Keep | None = None  # where the answer is
    twins: Images | None = None  # the same pictures without the content of the region
    labels: Mapping[str, Tensor] = field(default_factory=dict)  # true classes by task, and cluster ids
    missing: Mapping[str, str] = field(default_factory=dict)  # requested pictures that cannot be read: id -> reason
    seed: int = 0  # the study's; randomness is keyed by (seed, image id, component)

    def __post_init__(self) -> None:
        check_images(self.images)
        object.__setattr__(self, "images", self.images.detach())  # methods that need gradients work on a copy
        count = len(self.images)
        if self.targets.shape != (count,) or self.targets.dtype != torch.int64:
            raise BadShape(
                f"targets must be {count} int64 class indices, got {tuple(self.targets.shape)} {self.targets.dtype}"
            )
        if len(self.ids) != count:
            raise BadShape(f"ids must name each of the {count} images, got {len(self.ids)}")
        if self.regions is not None:
            shape = (count, *self.images.shape[2:])
            if self.regions.shape != shape or self.regions.dtype != torch.bool:
                raise BadShape(
                    f"regions must have shape {shape} and dtype bool, "
                    f"got {tuple(self.regions.shape)} {self.regions.dtype}"
                )
        if self.twins is not None and self.twins.shape != self.images.shape:
            raise BadShape(f"twins must have shape {tuple(self.images.shape)}, got {tuple(self.twins.shape)}")

    def __len__(self) -> int:
        return len(self.ids)

    def showing(self, images: Images) -> Batch:
        """The same targets and ids with other pictures (occluded, perturbed, without the object)."""
        return replace(self, images=images)

    def aimed(self, targets: Tensor) -> Batch:
        """The same pictures, another class to be explained."""
        return replace(self, targets=targets.to(self.images.device, torch.int64))

    def select(self, rows: Sequence[int] | Tensor, images: Images | None = None) -> Batch:
        """A smaller batch of the given rows, in their order; with `images` in place of its own pictures, if given."""
        index = torch.as_tensor(rows, dtype=torch.int64, device=self.images.device)
        return replace(
            self,
            images=self.images[index] if images is None else images,
            targets=self.targets[index],
            ids=tuple(self.ids[i] for i in index.tolist()),
            regions=None if self.regions is None else self.regions[index],
            twins=None if self.twins is None else self.twins[index],
            labels={name: values[index] for name, values in self.labels.items()},
        )

    def to(self, device: torch.device | str) -> Batch:
        return replace(
            self,
            images=self.images.to(device),
            targets=self.targets.to(device),
            regions=None if self.regions is None else self.regions.to(device),
            twins=None if self.twins is None else self.twins.to(device),
            labels={name: values.to(device) for name, values in self.labels.items()},
        )

    def seeds(self, component: str) -> list[int]:
        """One seed per image for a random component: independent of batch, order and device."""
        return [keyed_seed(self.seed, identity, component) for identity in self.ids]

    def generators(self, component: str) -> list[torch.Generator]:
        """One CPU generator per image. Draw on the CPU, then move: the numbers are then equal on every device."""
        return [torch.Generator().manual_seed(seed) for seed in self.seeds(component)]


def keyed_seed(*parts: object) -> int:
    """A 63-bit seed from the work itself, never from the clock or the order."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def check_images(images: Tensor) -> None:
    """Raise `BadShape` unless these are (B, C, H, W) float pictures in [0, 1]."""
    if images.ndim != 4:
        raise BadShape(f"images must have shape (batch, channels, height, width), got {tuple(images.shape)}")
    if not images.is_floating_point():
        raise BadShape(f"images must be floating point in [0, 1], got {images.dtype}: divide by 255")
    if images.numel():
        low, high = (float(v) for v in torch.aminmax(images.detach()))
        if not (low >= 0.0 and high <= 1.0):  # also catches NaN
            raise BadShape(
                f"images must lie in [0, 1], got [{low:g}, {high:g}]: pass pictures as they are, "
                "the model normalises (Model.mean, Model.std)"
            )


def check_maps(maps: Any, batch: Batch, whose: str = "") -> None:
    """Raise `BadShape` unless these are finite (B, H, W) maps of the batch: a NaN would get an arbitrary rank."""
    wanted = (len(batch), *batch.images.shape[2:])
    what = f"maps of {whose}" if whose else "maps"
    if not isinstance(maps, Tensor) or not maps.is_floating_point():
        got = maps.dtype if isinstance(maps, Tensor) else type(maps).__name__
        raise BadShape(f"{what} must be a tensor of floating-point numbers, got {got}")
    if maps.shape != wanted:
        hint = ": sum or pool the channels" if maps.ndim == 4 else ""
        raise BadShape(f"{what} must have shape {wanted}, got {tuple(maps.shape)}{hint}")
    # A cheap check first; the sum of large finite numbers may overflow, so a failure is checked in full.
    if not math.isfinite(float(maps.sum())) and not bool((finite := maps.flatten(1).isfinite().all(1)).all()):
        first = batch.ids[int((~finite).nonzero()[0])]
        raise BadShape(
            f"{what} must be finite, got NaN or infinity on {int((~finite).sum())} of {len(batch)} images, "
            f"first on {first!r}"
        )


@dataclass(frozen=True, eq=False)
class Model:
    """The model to explain: a network that takes images in [0, 1], and what its numbers mean."""

    name: str
    network: nn.Module
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    cam_layer: str | None = None  # dotted name of the layer whose activations CAM methods read
    view: View | None = None  # how pictures are cut to inputs, as the model's source declares
    task: str = "label"  # which of Batch.labels holds this model's classes
    classes: tuple[str, ...] = ()  # class names, where known
    fixed_size: bool = False  # True for networks that take one input size only (plain ViTs)
    output: Kind | str | None = None  # what the numbers mean (heatproof.outputs); None: recognised from answers
    probabilities: bool | None = None  # the network answers with probabilities of its kind; None: recognised
    label: int | None = None  # of several labels or values, the one in question

    def __post_init__(self) -> None:
        # One place, once: dropout and batch-norm statistics must not move during an explanation.
        self.network.eval()
        if self.output is not None:
            kind, probabilities = outputs.declared(self.output, f"model {self.name!r}")
            object.__setattr__(self, "output", kind)
            if probabilities is not None:
                object.__setattr__(self, "probabilities", probabilities)
        object.__setattr__(self, "classes", outputs.named(tuple(self.classes), self.kind if self.output else None))

    @classmethod
    def zero_shot(
        cls,
        image_encoder: nn.Module,
        text_features: Tensor,
        *,
        name: str = "zero_shot",
        scale: float = 100.0,
        bias: float = 0.0,
        **fields: Any,
    ) -> Model:
        """A classifier of an image encoder and the text features of every class: (classes, width), or (classes,
        templates, width).

        Its logits are scale · cosine + bias; `scale` is exp(logit_scale) of CLIP. `fields` are those of a model: mean,
        std, view, classes, output="sigmoid" for SigLIP.
        """
        network = ZeroShot(image_encoder, text_features, scale, bias)
        names, count = fields.get("classes", ()), network.head.out_features
        if names and len(names) != count:
            raise BadModel(f"model {name!r} has text features of {count} classes and names {len(names)}: one name each")
        return cls(name, network, **fields)

    @property
    def kind(self) -> Kind:
        """What the numbers mean, as far as is known: one number alone is a yes or no."""
        default: Kind = "sigmoid" if self.width == 1 else "softmax"
        return default if self.output is None else self.output  # type: ignore[return-value]

    @property
    def declared(self) -> str:
        """The declared output in one word; empty if none is."""
        scale = {None: "", True: ":probabilities", False: ":logits"}[self.probabilities]
        return f"{self.output}{scale}" if self.output else ""

    @property
    def width(self) -> int | None:
        """How many numbers the network answers with; None before its first answer."""
        found: int | None = vars(self.whole).get("_width")
        return found

    @property
    def several(self) -> bool:
        """Whether it answers several questions at once, labels or values, none of which is chosen yet."""
        return self.kind != "softmax" and self.label is None and (self.width or 1) > 1

    @property
    def question(self) -> Question:
        """What is asked of it: one of several classes, yes or no, or a value."""
        named: dict[Kind, Question] = {"softmax": "classes", "sigmoid": "yes_no", "regression": "value"}
        return named[self.kind]

    @property
    def reading(self) -> str:
        """How its numbers are read, for keys of what follows from them."""
        scale = ":probabilities" if self.probabilities else ""
        return f"{self.kind}{scale}{'' if self.label is None else f' {self.label}'}"

    @property
    def whole(self) -> Model:
        """The model with all its labels or values, of which this is one; else itself."""
        found: Model = vars(self).get("_whole", self)
        return found

    def of(self, label: int) -> Model:
        """The model of one of several labels or values; the same object every time."""
        kept: dict[int, Model] = vars(self).setdefault("_parts", {})
        if label not in kept:
            kept[label] = replace(self, label=label, classes=self._side_names(label))
            vars(kept[label])["_whole"] = self
        return kept[label]

    def _side_names(self, label: int) -> tuple[str, ...]:
        name = self.classes[label] if label < len(self.classes) else str(label)
        return (name,) if self.kind == "regression" else (f"not {name}", name)

    def read(self, logits: Logits, targets: Tensor, readout: Readout) -> Tensor:
        """The readout of each row's target in this model's answers: one number per row, differentiable."""
        return read(logits, targets, readout, self.question)

    @property
    def revision(self) -> str:
        """A hash of what answers and maps depend on: weights, all buffers, preprocessing, view, CAM layer, and the code
        and plain attributes of user-defined layers. Computed again after weights or settings change.
        """
        now = network_state.token(self.network)
        known: tuple[object, str] | None = self.__dict__.get("_revision")
        if known is None or known[0] != now:
            known = self.__dict__["_revision"] = (now, self._hash())
        return known[1]

    def _hash(self) -> str:
        digest = hashlib.sha256(repr((self.network, self.mean, self.std, self.cam_layer, self.view)).encode())
        kinds = {type(part) for part in self.network.modules()}
        digest.update("".join(sorted(source_hash.digest(kind) for kind in kinds if source_hash.is_own(kind))).encode())
        for name, tensor in network_state.tensors(self.network):
            digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
            digest.update(network_state.tensor_bytes(tensor))
        for text in network_state.settings(self.network):
            digest.update(text.encode("utf-8", "backslashreplace") + b"\x1e")
        return digest.hexdigest()[:16]

    @property
    def device(self) -> torch.device:
        return next((p.device for p in _parameters(self.network)), torch.device("cpu"))

    @property
    def dtype(self) -> torch.dtype:
        return next((p.dtype for p in _parameters(self.network) if p.is_floating_point()), torch.float32)

    def to(self, device: torch.device | str) -> Model:
        self.network.to(device)
        return self

    def normalised(self, images: Images) -> Tensor:
        shape = (1, -1, 1, 1)
        mean = torch.tensor(self.mean, dtype=images.dtype, device=images.device).view(shape)
        std = torch.tensor(self.std, dtype=images.dtype, device=images.device).view(shape)
        return (images - mean) / std

    def __call__(self, images: Images) -> Logits:
        """Logits of images in [0, 1], differentiable; `heatproof.engine` is the fast path."""
        return self.logits(self.network(self.normalised(images).to(self.dtype)), len(images))

    def logits(self, answer: Any, count: int) -> Logits:
        """The network's answer to `count` pictures as columns that can be explained (`heatproof.outputs`)."""
        found = check_answer(answer, count, self.name)
        vars(self.whole)["_width"] = found.shape[1]
        if self.kind == "softmax" and found.shape[1] < 2:
            raise BadModel(
                f"model {self.name!r} declares a softmax and answers with one number per image, whose softmax is "
                "always 1: declare output='sigmoid' for a yes or no, output='regression' for a value"
            )
        return outputs.columns(found, self.kind, bool(self.probabilities), self.label)


def check_network(network: nn.Module, name: str) -> None:
    """Raise `BadModel` for a network whose layers cannot be hooked."""
    if any(isinstance(part, torch.jit.ScriptModule) for part in network.modules()):
        raise BadModel(
            f"model {name!r} is TorchScript, whose layers cannot be hooked: return the Python network that it was "
            "made from, with its weights loaded (load_state_dict)"
        )


def _parameters(module: nn.Module) -> Iterator[nn.Parameter]:
    """In the order of `parameters()`, which takes ten times as long to set up as finding the first."""
    yield from (parameter for parameter in module._parameters.values() if parameter is not None)
    for below in module._modules.values():
        if below is not None:
            yield from _parameters(below)


def check_answer(answer: Any, count: int, name: str) -> Tensor:
    """The network's answer as float (B, numbers), or `BadModel` with what to do."""
    if not isinstance(answer, Tensor):
        inner = getattr(answer, "logits", None)
        if not isinstance(inner, Tensor):
            raise BadModel(
                f"model {name!r} must return a tensor of logits (batch, classes), got {type(answer).__name__}: "
                "wrap it in a module that returns the logits alone"
            )
        answer = inner
    if answer.ndim == 1 and len(answer) == count:  # one number per picture, squeezed
        answer = answer.unsqueeze(1)
    if answer.ndim != 2 or len(answer) != count or not answer.shape[1]:
        raise BadModel(f"model {name!r} must return logits of shape ({count}, classes), got {tuple(answer.shape)}")
    found: Tensor = answer if answer.dtype in (torch.float32, torch.float64) else answer.float()
    return found


@runtime_checkable
class Method(Protocol):
    """Who explains."""

    def __call__(self, model: Model, batch: Batch, /) -> Maps: ...


@runtime_checkable
class ConceptMethod(Protocol):
    """A method that scores how much a concept matters, directly, and not where it is."""

    def importance(self, model: Model, batch: Batch, /) -> Scores:
        """How much the concept matters to each image's target; NaN where the concept is not shown."""
        ...

    def kept_layers(self, model: Model, /) -> tuple[str, ...]:
        """The layers in which the concept differs significantly from chance."""
        ...


@runtime_checkable
class Segmenter(Protocol):
    """How a picture is cut into segments, which are shown or hidden as a whole."""

    def __call__(self, images: Images, /) -> Segments: ...


@runtime_checkable
class Imputer(Protocol):
    """Fills the hidden pixels. Kept pixels come back bit-identical.

    `seeds` holds one integer per row for imputers that sample; the same seed must give the same sample. One that
    declares `concurrent: ClassVar[bool] = True` may be called by several threads at once, with a row each, while the
    network runs on other pictures: worthwhile if it is slow and releases the GIL, as OpenCV and NumPy do.
    """

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images: ...


REMOVED = "share of the picture removed"  # the usual x axis of a curve


class Curve(NamedTuple):
    """The curve a score summarises, for the report: (B, K) each, or (K,) if all images share it."""

    x: Tensor
    y: Tensor


class Reason(StrEnum):
    """Why there is no score."""

    NOT_APPLICABLE = "not_applicable"  # the method or metric does not fit this model or these pictures
    UNDEFINED = "undefined"  # the metric has no value for this picture
    FAILED = "failed"  # an error; the next run tries again
    UNREADABLE = "unreadable"  # the picture could not be read


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores with details, notes and the curve behind them.

    `details` are further numbers per image by name: controls, the share of ties, whether a patch was verified. They
    go into the run's tables. `notes` are remarks for people, one per image, never parsed: a caveat, or why there is no
    score. A NaN with a note is undefined, one without is a defect of the metric, unless `reasons` says otherwise.
    `curve` is the curve that a score summarises.
    """

    values: Scores
    notes: tuple[str, ...] = ()
    curve: Curve | None = None
    details: Mapping[str, Tensor] = field(default_factory=dict)  # each (B,); NaN where there is none
    reasons: tuple[Reason | None, ...] = ()  # per image: why it has no score; None if it has one

    def reason(self, row: int) -> Reason | None:
        """Why an image has no score; None if it has one."""
        given = self.reasons[row] if self.reasons else None
        if given is not None or math.isfinite(float(self.values[row])):
            return given
        return Reason.UNDEFINED if self.notes and self.notes[row] else Reason.FAILED


@runtime_checkable
class Metric(Protocol):
    """How a heatmap is judged: one number per image."""

    @property
    def higher_is_better(self) -> bool: ...

    def __call__(self, attribution: Attribution, /) -> Scores | Scored: ...


@runtime_checkable
class Dataset(Protocol):
    """Where pictures come from. Any picture can be read alone, in any order."""

    @property
    def name(self) -> str: ...

    def __len__(self) -> int: ...

    def ids(self) -> tuple[str, ...]: ...

    def batch(self, indices: Sequence[int], /) -> Batch: ...

    def digest(self, indices: Sequence[int], /) -> str:
        """A hash of the content of these pictures: changes when a file does."""
        ...


class Cost(NamedTuple):
    """Passes of one image through the network."""

    forward: float
    backward: float


class Price(NamedTuple):
    """What a metric costs per image and map.

    A metric may declare its price by a method `cost() -> Price`, and `chance`, the mean score of maps without
    information, where that is known without measuring. With `measures = "description"` a metric describes maps and
    ranks no methods.
    """

    forward: float = 0  # passes for each map
    shared: float = 0  # passes shared by all maps of an image
    explanations: float = 0  # further maps, each at its method's own cost


@dataclass(frozen=True, eq=False)
class Attribution:
    """Maps with the model, batch and method they come from. Maps made elsewhere have no method."""

    model: Model
    batch: Batch
    method: Method | None
    maps: Maps

    def __post_init__(self) -> None:
        check_maps(self.maps, self.batch)

    @property
    def explainer(self) -> Method:
        """The method, for metrics that explain again: other pictures, another model. Raises if there are only maps."""
        if self.method is None:
            raise NotApplicable(
                "this metric explains again, on other pictures or another model, and needs the method that made the "
                "maps: got maps alone; judge the method itself (a study, or heatproof.run)"
            )
        return self.method


AnyMethod: TypeAlias = Method | Callable[[Model, Batch], Maps]
