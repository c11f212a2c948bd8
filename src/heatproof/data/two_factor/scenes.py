"""The ten scene classes and how one instance of a class becomes a picture."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from heatproof.data.two_factor.canvas import Canvas, Painting
from heatproof.data.two_factor.dice import Dice, Floats
from heatproof.data.two_factor.palette import colour, random_palette, settle
from heatproof.data.two_factor.scenes_built import bricks, city, pebbles, tiles
from heatproof.data.two_factor.scenes_nature import clouds, dunes, grass, ridges, trunks, water

Painter = Callable[[Dice, Canvas], Painting]
PAINTERS: tuple[Painter, ...] = (clouds, water, grass, dunes, bricks, pebbles, tiles, trunks, ridges, city)
SCENES: tuple[str, ...] = tuple(painter.__name__ for painter in PAINTERS)

_STREAM = 1


@dataclass(frozen=True, eq=False)
class Scene:
    """One scene as a picture (H, W, 3), read-only because it is shared, and whether it is dark."""

    picture: NDArray[np.uint8]
    is_dark: bool


# each scene instance serves ten samples, and samples are mostly read in order
@lru_cache(maxsize=64)
def scene(seed: int, scene_class: int, instance: int, size: int) -> Scene:
    """The scene that belongs to (seed, class, instance)."""
    dice = Dice(seed, _STREAM, scene_class, instance)
    palette = random_palette(dice, (0.04, 0.14))
    is_dark = dice.uniform() < 0.5
    mean = dice.uniform(0.31, 0.45) if is_dark else dice.uniform(0.52, 0.66)
    spread = dice.uniform(0.14, 0.19)
    painting = PAINTERS[scene_class](dice, Canvas.of(2 * size))
    tone = settle(_halve(painting.tone), mean, spread)
    picture = colour(palette, tone, _halve(painting.tint))
    picture.setflags(write=False)
    return Scene(picture, is_dark)


def _halve(fine: Floats) -> Floats:
    """The mean of each 2 x 2 block: painted twice as fine, so that edges are smooth."""
    side = max(fine.shape)
    fine = np.broadcast_to(fine, (side, side))
    return np.asarray((fine[0::2, 0::2] + fine[0::2, 1::2] + fine[1::2, 0::2] + fine[1::2, 1::2]) * 0.25)
