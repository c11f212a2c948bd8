"""What the model saw of a picture while its segments went, read back from a run's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Flips:
    """Every step as composed of the picture and `hidden`, or some steps as `frames`."""

    gone: np.ndarray[Any, Any]  # (H, W) uint8: the step of the curve at which each pixel goes, 0 if never
    hidden: np.ndarray[Any, Any] | None = None  # (H, W, 3) uint8: the wholly hidden picture
    frames: np.ndarray[Any, Any] | None = None  # (F, h, w, 3) uint8
    at: tuple[int, ...] = ()  # the steps of the frames


def flips_of(arrays: Mapping[str, np.ndarray[Any, Any]]) -> Iterator[tuple[str, Flips]]:
    """The flip-books of one method and metric, by picture."""
    hidden, frames, at = map(arrays.get, ("hidden", "frames", "at"))
    for row, identity in enumerate(arrays["ids"].tolist()):
        pages, steps = None, tuple[int, ...]()
        if frames is not None and at is not None and row < len(frames):
            pages, steps = coloured(frames[row]), tuple(map(int, at[row]))
        yield identity, Flips(arrays["gone"][row], None if hidden is None else coloured(hidden[row]), pages, steps)


def coloured(pictures: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(…, C, H, W) -> (…, H, W, 3); pictures of other than three channels are drawn in grey, as the mean of them."""
    last = np.moveaxis(pictures, -3, -1)
    if last.shape[-1] == 3:
        return last
    grey = last if last.shape[-1] == 1 else last.mean(-1, keepdims=True).round().astype(last.dtype)
    return grey.repeat(3, -1)
