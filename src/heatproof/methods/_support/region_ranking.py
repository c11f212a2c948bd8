"""Overlapping regions of a picture at several scales, and the greedy ranking of regions by a map."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt
from scipy import ndimage, sparse
from skimage.segmentation import felzenszwalb

Picture = npt.NDArray[np.float32]  # (H, W, C) in [0, 1]
Labels = npt.NDArray[np.int64]  # (H, W)
Floats = npt.NDArray[np.float64]


def felzenszwalb_labels(
    picture: Picture, scales: Sequence[float], sigma: float, min_size: int, side: int
) -> list[Labels]:
    """One segmentation per scale. The parameters are meant for pictures of side `side`.

    Larger pictures are segmented at that side. Smaller ones are segmented as they are, with areas in
    proportion and with a scale that shrinks with the side (regions have fewer pixels, but edges are steeper):
    about as many regions, in a fraction of the time.
    """
    shape = picture.shape[:2]
    ratio = min(1.0, min(shape) / side)
    if min(shape) > side:
        picture = cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA).reshape(side, side, -1)
    span = float(np.ptp(picture)) or 1.0
    scaled = (picture.astype(np.float64) - picture.min()) / span * 2 - 1
    found = []
    for scale in scales:
        labels = felzenszwalb(scaled, scale * ratio, sigma, max(1, round(min_size * ratio**2)))
        if labels.shape != shape:
            labels = cv2.resize(labels.astype(np.int32), shape[::-1], interpolation=cv2.INTER_NEAREST)
        found.append(labels.astype(np.int64))
    return found


def disk(radius: int) -> npt.NDArray[np.uint8]:
    reach = np.arange(-radius, radius + 1)
    return (reach[:, None] ** 2 + reach**2 <= radius**2).astype(np.uint8)


def dilated_regions(labels: Labels, radius: int) -> list[npt.NDArray[np.int64]]:
    """The pixels (flat indices) of every label, grown by a disk."""
    height, width = labels.shape
    element = disk(radius)
    found = []
    for label, place in enumerate(ndimage.find_objects(labels + 1)):
        if place is None:
            continue
        top, left = (max(0, axis.start - radius) for axis in place)
        window = np.s_[top : min(height, place[0].stop + radius), left : min(width, place[1].stop + radius)]
        inside = (labels[window] == label).astype(np.uint8)
        rows, columns = np.nonzero(cv2.dilate(inside, element) if radius else inside)
        found.append((rows + top) * width + columns + left)
    return found


def rank_regions(attribution: Floats, regions: Sequence[npt.NDArray[np.int64]], min_pixels: int) -> Floats:
    """Regions joined one by one, always the one with the densest attribution on the pixels it adds.

    Each pixel gets the density of the region that brought it in; regions that would add fewer than
    `min_pixels` are dropped, and what no region covers gets its own mean. Counts and sums of what each region
    would still add are kept up to date with the pixels just covered, so every pixel is looked at once.
    """
    values = attribution.ravel()
    starts = np.cumsum([0, *map(len, regions)])
    pixels = np.concatenate(list(regions)) if len(regions) else np.empty(0, np.int64)
    ones = np.ones(len(pixels), np.int8)
    member = sparse.csr_array((ones, pixels, starts), (len(regions), values.size)).tocsc()
    counts = np.diff(starts).astype(np.int64)
    owners = np.repeat(np.arange(len(regions)), counts)
    sums = np.bincount(owners, values[pixels], minlength=len(regions))
    result = np.full(values.size, np.nan)
    running = np.ones(len(regions), bool)
    while True:
        running &= counts >= max(1, min_pixels)
        if not running.any():
            break
        density = np.where(running, sums / np.maximum(counts, 1), -np.inf)
        best = int(density.argmax())
        new = regions[best][np.isnan(result[regions[best]])]
        result[new] = values[new].mean()
        running[best] = False
        lengths = member.indptr[new + 1] - member.indptr[new]
        ends = np.cumsum(lengths)
        entries = np.repeat(member.indptr[new] - ends + lengths, lengths) + np.arange(ends[-1])
        touched = member.indices[entries]
        counts -= np.bincount(touched, minlength=len(regions))
        sums -= np.bincount(touched, np.repeat(values[new], lengths), minlength=len(regions))
    rest = np.isnan(result)
    if rest.any():
        result[rest] = values[rest].mean()
    return result.reshape(attribution.shape)
