"""Sets of scenes in which one object is added to k of the ten scene classes (X^k of Yang & Kim 2019).

The more scene classes have the object, the less informative it is about the scene. The sets are nested, and the first
class of the order, the anchor, has the object in all of them: there only the object's informativeness changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from heatproof.data.two_factor.compose import SCALE, Sample, draw, sample_index
from heatproof.data.two_factor.objects import OBJECTS
from heatproof.data.two_factor.scenes import SCENES
from heatproof.errors import BadInput

ORDER: tuple[int, ...] = tuple(range(len(SCENES)))  # the order in which scene classes receive the object


@dataclass(frozen=True)
class KEntry:
    """One picture of a k-set, not yet drawn; its label is the scene class."""

    seed: int
    index: int
    object_class: int
    scene_class: int
    has_object: bool

    def draw(self, *, size: int = 64, scale: tuple[float, float] = SCALE) -> Sample:
        """The picture; without its object it is exactly the twin of the one with it."""
        return draw(self.seed, self.index, size=size, scale=scale, has_object=self.has_object)


def k_set(
    seed: int,
    k: int,
    n_per_class: int,
    *,
    object_class: int = 0,
    order: Sequence[int] = ORDER,
    first_instance: int = 0,
) -> list[KEntry]:
    """`n_per_class` pictures of every scene class, the object in all of the first k classes of `order`.

    Instances are counted from `first_instance`, so that sets for training and for testing share nothing.
    """
    if not 1 <= k <= len(SCENES):
        raise BadInput(f"k must be from 1 to {len(SCENES)}, got {k}.")
    if n_per_class < 1:
        raise BadInput(f"n_per_class must be 1 or more, got {n_per_class}.")
    if first_instance < 0:
        raise BadInput(f"first_instance must be 0 or more, got {first_instance}.")
    if sorted(order) != list(ORDER):
        raise BadInput(f"order must name each of the scene classes 0 to {ORDER[-1]} once, got {list(order)}.")
    if not 0 <= object_class < len(OBJECTS):
        raise BadInput(f"object_class must be from 0 to {len(OBJECTS) - 1}, got {object_class}.")
    carriers = frozenset(order[:k])
    return [
        KEntry(seed, sample_index(object_class, s, instance), object_class, s, s in carriers)
        for instance in range(first_instance, first_instance + n_per_class)
        for s in ORDER
    ]
