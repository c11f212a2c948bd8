"""Pictures with two independent factors, an object and a scene, ten classes of each, drawn by code."""

from heatproof.data.two_factor.compose import (
    GREY,
    NONE,
    PAIRS,
    SCALE,
    VERSION,
    Sample,
    Samples,
    draw,
    draw_many,
    sample_index,
    stack,
)
from heatproof.data.two_factor.k_sets import ORDER, KEntry, k_set
from heatproof.data.two_factor.objects import EASY_PAIR, HARD_PAIR, OBJECTS
from heatproof.data.two_factor.scenes import SCENES

__all__ = [
    "EASY_PAIR",
    "GREY",
    "HARD_PAIR",
    "NONE",
    "OBJECTS",
    "ORDER",
    "PAIRS",
    "SCALE",
    "SCENES",
    "VERSION",
    "KEntry",
    "Sample",
    "Samples",
    "draw",
    "draw_many",
    "k_set",
    "sample_index",
    "stack",
]
