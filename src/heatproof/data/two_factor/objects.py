"""The ten object classes and how one instance of a class is turned, lit and coloured."""

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from heatproof.data.two_factor import outlines
from heatproof.data.two_factor.dice import Dice, Floats
from heatproof.data.two_factor.noise import PERIOD, cell, fractal, smooth, step
from heatproof.data.two_factor.outlines import Outline
from heatproof.data.two_factor.palette import Palette, random_palette, settle
from heatproof.data.two_factor.raster import Bools, fit

OUTLINES: tuple[Outline, ...] = (
    outlines.star,
    outlines.ring,
    outlines.cross,
    outlines.crescent,
    outlines.heart,
    outlines.arrow,
    outlines.gear,
    outlines.flower,
    outlines.mug,
    outlines.bolt,
)
OBJECTS: tuple[str, ...] = tuple(outline.__name__ for outline in OUTLINES)
HARD_PAIR: tuple[int, int] = (OBJECTS.index("gear"), OBJECTS.index("flower"))
EASY_PAIR: tuple[int, int] = (OBJECTS.index("ring"), OBJECTS.index("bolt"))

TEXTURES = ("cloudy", "striped", "dotted", "chequered", "grained")

_STREAM = 2


@dataclass(frozen=True, eq=False)
class Thing:
    """One object instance: its shape, its surface, its colours; not yet turned or placed."""

    contours: list[Floats]
    hollows: list[Floats]
    palette: Palette
    texture: str
    table: Floats
    grain: float
    slant: float


@dataclass(frozen=True, eq=False)
class Figure:
    """An object turned and lit, cropped to its box: where it is, how light, which ramp."""

    region: Bools
    tone: Floats
    tint: Floats


def thing(seed: int, object_class: int, instance: int) -> Thing:
    """The object that belongs to (seed, class, instance)."""
    dice = Dice(seed, _STREAM, object_class, instance)
    palette = random_palette(dice, (0.07, 0.16))
    texture, grain, slant = dice.pick(TEXTURES), dice.uniform(0.8, 1.25), dice.uniform(0.0, np.pi)
    table = dice.table(PERIOD, PERIOD)
    mirror = np.array([dice.sign(), 1.0])
    contours, hollows = OUTLINES[object_class](dice)
    contours, hollows = [c * mirror for c in contours], [c * mirror for c in hollows]
    return Thing(contours, hollows, palette, texture, table, grain, slant)


def pose(item: Thing, side: int, turn: float, light: float, mean: float, spread: float) -> Figure:
    """The object turned by `turn` radians, `side` pixels long, lit from `light` radians off the top."""
    spin = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    region, hollow = fit([c @ spin for c in item.contours], [c @ spin for c in item.hollows], side)
    height, width = region.shape
    y, x = np.arange(height)[:, None] + 0.5 - height / 2, np.arange(width)[None, :] + 0.5 - width / 2
    u = (np.cos(turn) * x + np.sin(turn) * y) / side * 2
    v = (np.cos(turn) * y - np.sin(turn) * x) / side * 2
    surface = _surface(item, u, v)
    inside = np.asarray(ndimage.distance_transform_edt(np.pad(region, 1)))[1:-1, 1:-1]
    bevel = max(0.11 * side, 1.5)
    rise = np.minimum(inside / bevel, 1.0)
    dome = ndimage.gaussian_filter(bevel * (1 - (1 - rise) ** 2), 0.7)
    down, right = np.gradient(np.pad(dome, 1))
    # a surface that rises away from the light faces it
    slope = (np.sin(light) * right + np.cos(light) * down)[1:-1, 1:-1]
    shade = 0.24 * np.clip(slope, -1.2, 1.2)
    tone = shade + 0.20 * (surface - 0.5) - 0.05 * np.cos(light) * v - 0.5 * hollow
    rim = step(-1.6, -0.9, -inside) if side > 16 else np.zeros_like(inside)
    settled = np.zeros(region.shape)
    settled[region] = settle(tone[region], mean, spread)
    settled = np.clip(settled + (0.30 if mean < 0.5 else -0.30) * rim, 0.0, 1.0)
    return Figure(region, settled, np.clip(1.3 * surface - 0.15 - 0.5 * hollow, 0.0, 1.0))


def _surface(item: Thing, u: Floats, v: Floats) -> Floats:
    """The texture in the object's own coordinates (about -1 to 1), values in [0, 1]."""
    u, v = u * item.grain + 8.0, v * item.grain + 8.0
    along = np.cos(item.slant) * u + np.sin(item.slant) * v
    if item.texture == "striped":
        return step(-0.5, 0.5, np.sin(along * 9.0 + 1.5 * smooth(item.table, u * 2, v * 2)))
    if item.texture == "dotted":
        fu, fv = (u * 3.2) % 1 - 0.5, (v * 3.2) % 1 - 0.5
        return step(-0.12, -0.04, -(fu**2 + fv**2))
    if item.texture == "chequered":
        return (np.floor(u * 3.0) + np.floor(v * 3.0)) % 2 * 0.8 + 0.2 * cell(item.table, u * 3.0, v * 3.0)
    if item.texture == "grained":
        across = np.cos(item.slant) * v - np.sin(item.slant) * u
        return np.clip(2.0 * fractal(item.table, along * 1.2, across * 7.0, 3) - 0.5, 0.0, 1.0)
    return np.clip(2.4 * fractal(item.table, u * 1.6, v * 1.6) - 0.7, 0.0, 1.0)
