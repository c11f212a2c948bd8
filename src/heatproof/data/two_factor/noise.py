"""Smooth noise over the plane and over the line, read from a small periodic table."""

import numpy as np

from heatproof.data.two_factor.dice import Floats

PERIOD = 32  # a power of two, so that wrapping is a bit-wise and


def cell(table: Floats, u: Floats, v: Floats) -> Floats:
    """One constant number per unit square of (u, v)."""
    return np.asarray(table[_wrap(np.floor(v)), _wrap(np.floor(u))])


def smooth(table: Floats, u: Floats, v: Floats) -> Floats:
    """Value noise in [0, 1): the table's numbers at whole (u, v), eased in between."""
    u0, v0 = np.floor(u), np.floor(v)
    s, t = _ease(u - u0), _ease(v - v0)
    # one flat index and `take`: several times faster than indexing with two arrays
    i, j, flat = _wrap(u0), _wrap(v0) * PERIOD, table.ravel()
    right, below = (i + 1) & (PERIOD - 1), (j + PERIOD) & (PERIOD * PERIOD - 1)
    top = flat.take(j + i)
    top += (flat.take(j + right) - top) * s
    bottom = flat.take(below + i)
    bottom += (flat.take(below + right) - bottom) * s
    bottom -= top
    bottom *= t
    bottom += top
    return np.asarray(bottom)


def fractal(table: Floats, u: Floats, v: Floats, octaves: int = 4) -> Floats:
    """1/f noise around 0.5: octaves of value noise, each twice as fine and half as strong."""
    total = np.zeros(np.broadcast_shapes(u.shape, v.shape))
    for octave in range(octaves):
        # the shift keeps the octaves' lattices from sharing a corner, which would show as a cross
        total += 0.5**octave * smooth(table, u * 2**octave + 5.3 * octave, v * 2**octave + 9.7 * octave)
    return total / (2 - 0.5 ** (octaves - 1))


def line(row: Floats, u: Floats, octaves: int = 1) -> Floats:
    """Fractal noise around 0.5 along one dimension."""
    total = np.zeros(u.shape)
    for octave in range(octaves):
        w = u * 2**octave + 5.3 * octave
        w0 = np.floor(w)
        s, i = _ease(w - w0), _wrap(w0)
        total += 0.5**octave * (row[i] * (1 - s) + row[(i + 1) & (PERIOD - 1)] * s)
    return total / (2 - 0.5 ** (octaves - 1))


def step(low: float, high: float, values: Floats) -> Floats:
    """0 below low, 1 above high, eased in between."""
    return _ease(np.clip((values - low) / (high - low), 0.0, 1.0))


def _ease(t: Floats) -> Floats:
    return np.asarray(t * t * (3 - 2 * t))


def _wrap(whole: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return whole.astype(np.int64) & (PERIOD - 1)
