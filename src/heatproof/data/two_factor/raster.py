"""From contours to exact binary pixels."""

import numpy as np
from numpy.typing import NDArray

from heatproof.data.two_factor.dice import Floats

Bools = NDArray[np.bool_]


def fill(contours: list[Floats], height: int, width: int) -> Bools:
    """Pixels whose centre lies inside an odd number of contours (x right, y down, in pixels)."""
    toggles = np.zeros((height, width + 1), dtype=np.int64)
    centres = np.arange(height) + 0.5
    for contour in contours:
        x0, y0 = contour[:, 0, None], contour[:, 1, None]
        x1, y1 = np.roll(contour[:, 0], -1)[:, None], np.roll(contour[:, 1], -1)[:, None]
        edge, row = np.nonzero((y0 <= centres) != (y1 <= centres))
        at = x0[edge, 0] + (x1 - x0)[edge, 0] * (centres[row] - y0[edge, 0]) / (y1 - y0)[edge, 0]
        # the first pixel centre to the right of the crossing; rounding keeps machines from disagreeing on it
        column = np.ceil(np.round(at, 7) - 0.5).clip(0, width).astype(np.int64)
        np.add.at(toggles, (row, column), 1)
    return np.asarray(np.cumsum(toggles[:, :-1], axis=1) % 2 == 1)


def box(region: Bools) -> tuple[int, int, int, int]:
    """Top, bottom, left, right of a region that is not empty; bottom and right excluded."""
    rows, columns = np.nonzero(region.any(axis=1))[0], np.nonzero(region.any(axis=0))[0]
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def fit(contours: list[Floats], hollows: list[Floats], side: int) -> tuple[Bools, Bools]:
    """Silhouette and hollow, cropped to the silhouette, whose longer side is exactly `side` pixels.

    A sharp tip may pass between pixel centres, so the shape grows until enough is covered; what then sticks
    out (a pixel, when two tips appear at once) is cut off.
    """
    corners = np.concatenate(contours)
    low, high = corners.min(axis=0), corners.max(axis=0)
    extent = float((high - low).max())
    for growth in range(24):
        length = side + 0.5 * growth
        grid, zoom = int(length) + 4, length / extent
        region = fill([(part - low) * zoom + 1.3 for part in contours], grid, grid)
        if not region.any():
            continue
        top, _, left, _ = box(region)
        region[top + side :], region[:, left + side :] = False, False
        top, bottom, left, right = box(region)
        if max(bottom - top, right - left) == side:
            break
    inner = fill([(part - low) * zoom + 1.3 for part in hollows], grid, grid)
    return region[top:bottom, left:right], (inner & region)[top:bottom, left:right]
