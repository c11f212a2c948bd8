"""The completeness error: whether the map adds up to the rise of the model's output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

from torch import Tensor

from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.baselines import Baseline, answer_rise, revision_of
from heatproof.metrics._support.shared_answers import answered, logits
from heatproof.metrics._support.undefined import scored
from heatproof.registry import metric
from heatproof.spec import recipe
from heatproof.types import Attribution, Batch, Maps, Model, Price, Readout, Scored


@runtime_checkable
class Complete(Protocol):
    """A method that declares what its maps add up to."""

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """(B,): the declared sum of each map; `NotApplicable` if its settings imply none."""
        ...


@runtime_checkable
class CompleteBySegment(Protocol):
    """A complete method whose maps give every pixel of a segment the worth of the whole of it."""

    def added(self, batch: Batch, maps: Maps, /) -> Tensor:
        """(B,): the sum of the worths, each counted once."""
        ...


@metric
@dataclass(frozen=True)
class CompletenessError:
    """How far the map's sum is from the answer's rise over a baseline, in units of that rise; a zero map scores 1.

    Without a `baseline` each method is judged by the sum it declares, with its own baseline and readout; a method that
    declares none is not applicable. With one, every method is judged by the rise over it. The rise counts as no less
    than `floor` times the spread of the outputs of all classes. The detail `ratio` is the sum over the rise.

    Paper: Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks"
    """

    baseline: Baseline | None = None
    readout: Readout = "logit"  # with a baseline
    floor: float = 1e-3

    revision = revision_of("baseline")

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["axiom"]] = "axiom"

    def __post_init__(self) -> None:
        if not self.floor >= 0:
            raise BadInput(f"floor must be a number from 0, got {self.floor}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        rise = self._rise(attribution).double().cpu()
        total = self._sum(attribution).double().cpu()
        answers = logits(attribution.model, attribution.batch.images).double().cpu()
        spread = answers.std(1) if answers.shape[1] > 1 else answers.abs().squeeze(1)
        unit = rise.abs().clamp_min(self.floor * spread) if len(rise) else rise
        undefined = {"the model's answer is the same to the baseline and to the picture": unit == 0}
        return scored((total - rise).abs() / unit, undefined, {"ratio": total / rise, "rise": rise})

    def _sum(self, attribution: Attribution) -> Tensor:
        """The sums of the maps over pixels, or over segments where the method promises that."""
        method = attribution.explainer
        if self.baseline is None and isinstance(method, CompleteBySegment):
            return method.added(attribution.batch, attribution.maps)
        return attribution.maps.double().flatten(1).sum(1)

    def _rise(self, attribution: Attribution) -> Tensor:
        model, batch, method = attribution.model, attribution.batch, attribution.explainer
        if self.baseline is not None:
            baseline = self.baseline
            question = f"rise over {recipe.key(baseline)} {self.readout}"
            return answered(question, model, batch, lambda: answer_rise(model, batch, baseline, 1, self.readout))
        if not isinstance(method, Complete):
            raise NotApplicable(
                f"{recipe.label(method)} does not declare that its maps add up to the answer: name a baseline to judge "
                "every method by the answer's rise over it, as completeness_error(baseline=black)"
            )
        return method.total(model, batch)

    def cost(self) -> Price:
        return Price(shared=2)


metric.alias(
    "Completeness",
    CompletenessError,
    "Quantus. There it is True or False by exact equality of floats, and of colour pictures one channel is replaced.",
    baseline="black",
)
