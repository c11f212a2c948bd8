"""The model to explain, and what its numbers mean."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from heatproof import network_state, outputs
from heatproof.errors import BadModel
from heatproof.questions import Kind, Question, Readout
from heatproof.spec import source_hash
from heatproof.types.batch import View
from heatproof.types.tensors import Images, Logits
from heatproof.zero_shot import ZeroShot


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
        return outputs.read(logits, targets, readout, self.question)

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
