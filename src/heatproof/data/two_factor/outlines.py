"""Ten silhouettes as closed contours; where contours overlap, every second layer is a hole.

Coordinates are free: an object is turned and then scaled by its extent. A second list holds contours that are
only drawn on the object as a hollow (the inside of a mug) and do not change its silhouette.
"""

from collections.abc import Callable

import numpy as np

from heatproof.data.two_factor.dice import Dice, Floats

Contours = list[Floats]
Outline = Callable[[Dice], tuple[Contours, Contours]]

_TURN = np.linspace(0.0, 2 * np.pi, 72, endpoint=False)


def star(dice: Dice) -> tuple[Contours, Contours]:
    """Five points."""
    inner = dice.uniform(0.42, 0.50)
    angle = np.arange(10) * np.pi / 5 - np.pi / 2
    return [_polar(np.where(np.arange(10) % 2 == 0, 1.0, inner), angle)], []


def ring(dice: Dice) -> tuple[Contours, Contours]:
    """A flat ring, at times a little oval."""
    oval = np.array([1.0, dice.uniform(0.85, 1.0)])
    hole = dice.uniform(0.50, 0.62)
    return [_circle(1.0) * oval, _circle(hole) * oval], []


def cross(dice: Dice) -> tuple[Contours, Contours]:
    """Two equal bars."""
    w = dice.uniform(0.30, 0.38)
    quarter = np.array([(w, -1.0), (w, -w), (1.0, -w)])
    turned = [quarter @ _rotation(k * np.pi / 2) for k in range(4)]
    return [np.concatenate([turned[k] for k in (0, 3, 2, 1)])], []


def crescent(dice: Dice) -> tuple[Contours, Contours]:
    """A young moon, horns to the right."""
    away = dice.uniform(0.42, 0.55)
    radius = 0.85
    # where the two circles meet, seen from the centre of each
    reach = np.arccos((1 + away**2 - radius**2) / (2 * away))
    inner = np.arctan2(np.sin(reach), np.cos(reach) - away)
    outside = np.linspace(reach, 2 * np.pi - reach, 48)
    inside = np.linspace(2 * np.pi - inner, inner, 40)[1:-1]
    return [np.concatenate([_polar(1.0, outside), _polar(radius, inside) + np.array([away, 0.0])])], []


def heart(dice: Dice) -> tuple[Contours, Contours]:
    """Two lobes and a point."""
    tall = dice.uniform(0.92, 1.06)
    x = 16 * np.sin(_TURN) ** 3
    y = 13 * np.cos(_TURN) - 5 * np.cos(2 * _TURN) - 2 * np.cos(3 * _TURN) - np.cos(4 * _TURN)
    return [np.stack([x, -y * tall], axis=1)], []


def arrow(dice: Dice) -> tuple[Contours, Contours]:
    """A broad arrow to the right."""
    shaft, neck, barb = dice.uniform(0.22, 0.30), dice.uniform(-0.05, 0.15), dice.uniform(0.62, 0.74)
    upper = np.array([(-1.0, -shaft), (neck, -shaft), (neck, -barb), (1.0, 0.0)])
    lower = upper[:3][::-1] * np.array([1.0, -1.0])
    return [np.concatenate([upper, lower])], []


def gear(dice: Dice) -> tuple[Contours, Contours]:
    """A toothed wheel: the flower with square teeth in place of its petals."""
    teeth, depth, hole = _wheel(dice)
    start = np.arange(teeth)[:, None] * 2 * np.pi / teeth
    corners = np.array([-0.32, -0.19, 0.0, 0.19, 0.32, 0.5]) * 2 * np.pi / teeth
    radius = np.array([1 - depth, 1.0, 1.0, 1.0, 1 - depth, 1 - depth])
    angle = (start + corners).ravel()
    return [_polar(np.tile(radius, teeth), angle), _circle(hole)], []


def flower(dice: Dice) -> tuple[Contours, Contours]:
    """A blossom: the gear with round petals and sharp notches in place of its teeth."""
    petals, depth, hole = _wheel(dice)
    angle = np.linspace(0.0, 2 * np.pi, petals * 12, endpoint=False)
    lobe = np.abs(np.cos(petals * angle / 2)) ** 0.8
    return [_polar(1 - depth * 1.15 * (1 - lobe), angle), _circle(hole)], []


def mug(dice: Dice) -> tuple[Contours, Contours]:
    """A mug with its handle to the right, the hollow seen from above."""
    tall, taper = dice.uniform(0.85, 1.0), dice.uniform(0.0, 0.08)
    sweep = np.linspace(0.0, np.pi, 24)
    lip = 0.20
    top = np.stack([-0.72 * np.cos(sweep), -tall - lip * np.sin(sweep)], axis=1)
    foot = np.stack([(0.72 - taper) * np.cos(sweep), tall - 0.12 + 0.12 * np.sin(sweep)], axis=1)
    # the handle is part of the outer contour, its eye a hole
    grip = np.linspace(np.pi / 2, -np.pi / 2, 18)
    middle = np.array([0.70, -0.05])
    handle = np.stack([0.56 * np.cos(grip), 0.60 * np.sin(grip)], axis=1) + middle
    eye = np.stack([0.30 * np.cos(grip), 0.34 * np.sin(grip)], axis=1) + middle + np.array([0.02, 0.0])
    hollow = np.stack([0.58 * np.cos(_TURN), -tall + (lip - 0.06) * np.sin(_TURN)], axis=1)
    return [np.concatenate([top, handle[::-1], foot]), eye], [hollow]


def bolt(dice: Dice) -> tuple[Contours, Contours]:
    """A flash of lightning."""
    wide = dice.uniform(0.95, 1.2)
    left = [(0.12, -1.0), (-0.52, 0.12), (-0.10, 0.12), (-0.30, 1.0)]
    right = [(0.52, -0.28), (0.08, -0.28), (0.42, -1.0)]
    return [np.array(left + right) * np.array([wide, 1.0])], []


def _wheel(dice: Dice) -> tuple[int, float, float]:
    return dice.integer(7, 9), dice.uniform(0.24, 0.30), dice.uniform(0.22, 0.32)


def _circle(radius: float) -> Floats:
    return _polar(radius, _TURN)


def _polar(radius: Floats | float, angle: Floats) -> Floats:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _rotation(angle: float) -> Floats:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
