"""Samples: an object on a scene, the same scene without it, the object on grey, and the region that differs.

Sample `index` shows class pair `index % 100` (ten object classes x ten scene classes) in instance
`index // 100`: each scene instance and each object instance occurs in ten samples, as in BAM (Yang & Kim
2019), so that an interval can be drawn over independent objects and scenes. How large, how turned and where
is the sample's own.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatproof.data.two_factor.dice import Dice
from heatproof.data.two_factor.objects import OBJECTS, pose, thing
from heatproof.data.two_factor.palette import colour
from heatproof.data.two_factor.raster import Bools
from heatproof.data.two_factor.scenes import SCENES, scene
from heatproof.errors import BadInput

VERSION: int = 1  # raise it whenever any pixel of any sample changes
GREY: int = 128  # the background of a lone object
NONE: int = -1  # object label and object id of a picture without an object
PAIRS: int = len(OBJECTS) * len(SCENES)
TURN: float = 25.0  # an object is turned by at most this many degrees either way
# 1/sqrt(3) to 1/sqrt(2): a square on the object's longer side fills a third to a half of the picture
SCALE: tuple[float, float] = (0.57, 0.70)

_STREAM = 3

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Sample:
    """One picture with everything that is known about it. True in `region` is an object pixel."""

    image: Pixels
    twin: Pixels
    region: Bools
    on_grey: Pixels
    object_label: int
    scene_label: int
    object_id: int
    scene_id: int


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples stacked along a first axis."""

    image: Pixels
    twin: Pixels
    region: Bools
    on_grey: Pixels
    object_label: NDArray[np.int64]
    scene_label: NDArray[np.int64]
    object_id: NDArray[np.int64]
    scene_id: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.image)


def sample_index(object_class: int, scene_class: int, instance: int) -> int:
    """The index at which this pair of classes is shown in this instance."""
    return PAIRS * instance + len(SCENES) * object_class + scene_class


def draw(
    seed: int,
    index: int,
    *,
    size: int = 64,
    scale: tuple[float, float] = SCALE,
    object_class: int | None = None,
    scene_class: int | None = None,
    has_object: bool = True,
) -> Sample:
    """The sample that belongs to (seed, index); `scale` bounds the object's longer side over the size.

    A given class replaces the one the index stands for; instance, pose and place stay the index's own.
    """
    _check(seed, index, size, scale, object_class, scene_class)
    instance, pair = divmod(index, PAIRS)
    own_object, own_scene = divmod(pair, len(SCENES))
    o = own_object if object_class is None else object_class
    s = own_scene if scene_class is None else scene_class
    behind = scene(seed, s, instance, size)
    twin, scene_id = behind.picture.copy(), instance * len(SCENES) + s
    on_grey = np.full_like(twin, GREY)
    region = np.zeros((size, size), dtype=np.bool_)
    if not has_object:
        return Sample(twin.copy(), twin, region, on_grey, NONE, s, NONE, scene_id)

    dice = Dice(seed, _STREAM, index)
    side = dice.integer(*_sides(scale, size))
    turn, light = np.deg2rad(dice.uniform(-TURN, TURN)), np.deg2rad(dice.uniform(-50.0, 50.0))
    down, right = dice.uniform(), dice.uniform()
    spread = dice.uniform(0.12, 0.15)
    item = thing(seed, o, instance)

    # light on dark and dark on light, both far from the grey: no object melts into what is behind it
    mean = dice.uniform(0.77, 0.86) if behind.is_dark else dice.uniform(0.16, 0.26)
    figure = pose(item, side, float(turn), float(light), mean, spread)
    height, width = figure.region.shape
    top, left = int(down * (size - height + 1)), int(right * (size - width + 1))
    box = (slice(top, top + height), slice(left, left + width))
    region[box] = figure.region
    painted = colour(item.palette, figure.tone[figure.region], figure.tint[figure.region])
    image = twin.copy()
    image[region] = painted
    on_grey[region] = painted
    return Sample(image, twin, region, on_grey, o, s, instance * len(OBJECTS) + o, scene_id)


def draw_many(
    seed: int,
    indices: Iterable[int],
    *,
    size: int = 64,
    scale: tuple[float, float] = SCALE,
    object_class: int | None = None,
    scene_class: int | None = None,
    has_object: bool = True,
) -> Samples:
    """Many samples, each exactly as drawn alone."""
    drawn = [
        draw(
            seed,
            int(index),
            size=size,
            scale=scale,
            object_class=object_class,
            scene_class=scene_class,
            has_object=has_object,
        )
        for index in indices
    ]
    return stack(drawn, size)


def stack(drawn: list[Sample], size: int = 64) -> Samples:
    """The samples along a first axis; `size` only matters when there are none."""
    pictures = (len(drawn), size, size, 3) if not drawn else (len(drawn), *drawn[0].image.shape)

    def whole(numbers: Iterable[int]) -> NDArray[np.int64]:
        return np.fromiter(numbers, dtype=np.int64, count=len(drawn))

    return Samples(
        image=np.array([s.image for s in drawn], dtype=np.uint8).reshape(pictures),
        twin=np.array([s.twin for s in drawn], dtype=np.uint8).reshape(pictures),
        region=np.array([s.region for s in drawn], dtype=np.bool_).reshape(pictures[:3]),
        on_grey=np.array([s.on_grey for s in drawn], dtype=np.uint8).reshape(pictures),
        object_label=whole(s.object_label for s in drawn),
        scene_label=whole(s.scene_label for s in drawn),
        object_id=whole(s.object_id for s in drawn),
        scene_id=whole(s.scene_id for s in drawn),
    )


def _sides(scale: tuple[float, float], size: int) -> tuple[int, int]:
    """The whole pixels within the range; a range between two pixels means the one above."""
    low = max(int(np.ceil(scale[0] * size - 1e-9)), 1)
    return low, max(low, int(np.floor(scale[1] * size + 1e-9)))


def _check(
    seed: int,
    index: int,
    size: int,
    scale: tuple[float, float],
    object_class: int | None,
    scene_class: int | None,
) -> None:
    if seed < 0 or index < 0:
        raise BadInput(f"seed and index must be 0 or more, got seed {seed} and index {index}.")
    if size < 16:
        raise BadInput(f"size must be at least 16 pixels, got {size}: smaller pictures show nothing.")
    if not 4 / size <= scale[0] <= scale[1] <= 1:
        raise BadInput(f"scale must satisfy {4 / size:.3g} <= low <= high <= 1, got {scale}.")
    for name, value, known in (("object_class", object_class, OBJECTS), ("scene_class", scene_class, SCENES)):
        if value is not None and not 0 <= value < len(known):
            raise BadInput(f"{name} must be from 0 to {len(known) - 1} ({', '.join(known)}), got {value}.")
