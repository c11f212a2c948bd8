"""Multigrid for ROAD's linear system: each hidden pixel is the weighted mean of its eight neighbours.

Conjugate gradients, preconditioned by one V-cycle. The weights (1 2 1, 2 · 2, 1 2 1) suit it: one plain averaging sweep
leaves a third of the rough error, and the smooth error is corrected on a grid of half the size. Where a coarse cell
holds hidden and visible pixels, the visible ones pull it towards no correction as strongly as they pull fine pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

Planes: TypeAlias = npt.NDArray[np.float32]  # (C, H, W)
Plane: TypeAlias = npt.NDArray[np.float32]  # (H, W)
Flags: TypeAlias = npt.NDArray[np.bool_]  # (H, W)

_AROUND = np.array([[1, 2, 1], [2, 0, 2], [1, 2, 1]], np.float32)
_BELL = np.array([1, 2, 1], np.float32) / 4
NARROWEST = 16  # pixels per side below which an exact solution is cheap and strips converge slowly
_COARSEST = 8  # cells per side at which plain sweeps solve the system
_SWEEPS = 8
_MOST = 50  # iterations; a fifth of the error survives each, so five to eight are usual


@dataclass(frozen=True, eq=False)
class Level:
    """One grid: its unknown cells, and the diagonal of their equations with its inverse, 0 elsewhere."""

    free: Plane
    diagonal: Plane
    inverse: Plane

    def sweep(self, values: Planes, given: Planes) -> Planes:
        """One Jacobi step: every cell becomes the mean of its neighbours."""
        moved = around(values)
        moved += given
        moved *= self.inverse
        return moved

    def applied(self, values: Planes) -> Planes:
        """The left-hand side of the equations: the diagonal term minus the sum over the neighbours."""
        found = self.diagonal * values
        inflow = around(values)
        inflow *= self.free
        found -= inflow
        return found


def around(planes: Planes) -> Planes:
    """The weighted sum of the eight neighbours, those beyond the border being 0."""
    found = np.empty_like(planes)
    for plane, out in zip(planes, found, strict=True):
        cv2.filter2D(plane, -1, _AROUND, dst=out, borderType=cv2.BORDER_CONSTANT)
    return found


def coarser(planes: Planes) -> Planes:
    """The sums over 2 × 2 cells after smoothing: the transpose of `finer`."""
    count, height, width = planes.shape
    found = np.empty((count, height // 2, width // 2), np.float32)
    for plane, out in zip(planes, found, strict=True):
        smooth = cv2.sepFilter2D(plane, -1, _BELL, _BELL, borderType=cv2.BORDER_REPLICATE)
        cv2.resize(smooth, (width // 2, height // 2), dst=out, interpolation=cv2.INTER_AREA)
    found *= 4
    return found


def finer(planes: Planes) -> Planes:
    """Bilinear interpolation to twice the size."""
    count, height, width = planes.shape
    found = np.empty((count, 2 * height, 2 * width), np.float32)
    for plane, out in zip(planes, found, strict=True):
        cv2.resize(plane, (2 * width, 2 * height), dst=out, interpolation=cv2.INTER_LINEAR)
    return found


def depth(height: int, width: int) -> int:
    """The number of grids, each of half the size, until the longer side has few cells."""
    return max(1, 1 + int(np.ceil(np.log2(max(1, max(height, width) / _COARSEST)))))


def hierarchy(hidden: Flags, visible: Flags, grids: int) -> list[Level]:
    """The grids, finest first; pixels that are neither hidden nor visible pad the picture and have no neighbours."""
    free = hidden.astype(np.float32)
    pull = free * around(visible.astype(np.float32)[None])[0]  # the weights of neighbouring visible pixels
    levels = []
    for grid in range(grids):
        if grid:
            free = (_sums(free) > 0).astype(np.float32)
            pull = _sums(pull)
        diagonal = free * around(free[None])[0] + pull
        inverse = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
        levels.append(Level(free, diagonal, inverse))
    return levels


def _sums(plane: Plane) -> Plane:
    return np.asarray(plane[::2, ::2] + plane[1::2, ::2] + plane[::2, 1::2] + plane[1::2, 1::2])


def cycle(levels: list[Level], given: Planes) -> Planes:
    """One V-cycle from zero: an approximate solution of the finest level, linear and symmetric in `given`."""
    level = levels[0]
    values = given * level.inverse  # a sweep from zero
    if len(levels) == 1:
        for _ in range(_SWEEPS):
            values = level.sweep(values, given)
        return values
    missing = around(values)  # the residual after that sweep
    missing *= level.free
    correction = finer(cycle(levels[1:], coarser(missing)))
    correction *= level.free
    values += correction
    return level.sweep(values, given)


def solve(picture: Planes, hidden: Flags, tolerance: float) -> Planes:
    """(C, hidden pixels): each the mean of its neighbours, up to about the tolerance (root mean square)."""
    height, width = hidden.shape
    grids = depth(height, width)
    step = 2 ** (grids - 1)
    room = (-(-height // step) * step, -(-width // step) * step)
    unknown, known = np.zeros(room, bool), np.zeros(room, bool)
    unknown[:height, :width], known[:height, :width] = hidden, ~hidden
    levels = hierarchy(unknown, known, grids)
    finest = levels[0]
    middle = np.array([plane.mean(where=~hidden, dtype=np.float64) for plane in picture], np.float32)[:, None]
    shown = np.zeros((len(picture), *room), np.float32)  # the visible pixels, around their mean
    shown[:, :height, :width] = (picture - middle[..., None]) * ~hidden
    missing = around(shown) * finest.free
    values, direction, power = np.zeros_like(missing), np.zeros_like(missing), 1.0
    # The estimate may fall short of the error where nearly all is hidden: hence a third of the tolerance.
    enough = tolerance**2 / 9 * len(picture) * np.count_nonzero(hidden)
    for _ in range(_MOST):
        guess = cycle(levels, missing)  # approximately the error
        before, power = power, _inner(missing, guess)
        if power <= 0:  # the residual is exactly zero
            break
        direction *= np.float32(power / before)
        direction += guess
        change = finest.applied(direction)
        length = np.float32(power / _inner(direction, change))
        values += length * direction
        if _inner(guess, guess) <= enough:
            break
        change *= length
        missing -= change
    return np.asarray(values[:, :height, :width][:, hidden] + middle)


def _inner(one: Planes, other: Planes) -> float:
    return float(np.vdot(one, other))
