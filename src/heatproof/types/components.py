"""The protocols of components: who explains, judges, cuts, fills, and where pictures come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from heatproof.types.batch import Batch
from heatproof.types.model import Model
from heatproof.types.tensors import Images, Keep, Maps, Scores, Segments

if TYPE_CHECKING:
    from heatproof.types.scored import Attribution, Scored


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


AnyMethod: TypeAlias = Method | Callable[[Model, Batch], Maps]
